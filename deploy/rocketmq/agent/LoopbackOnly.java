import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.net.InetAddress;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;

/**
 * Binds to the loopback whatever a server would bind to every address: RocketMQ has no setting for
 * its gRPC and replication ports. All of Java's sockets pass through the one method that is changed.
 */
public final class LoopbackOnly {
  private static final String SOCKETS = "sun.nio.ch.Net";

  private LoopbackOnly() {}

  /** Called by the JVM before main. */
  public static void premain(String arguments, Instrumentation instrumentation) {
    ClassFileTransformer changed =
        new AgentBuilder.Default()
            .disableClassFormatChanges()
            .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
            .ignore(ElementMatchers.not(ElementMatchers.named(SOCKETS)))
            .type(ElementMatchers.named(SOCKETS))
            .transform(
                (builder, type, loader, module, domain) ->
                    builder.visit(
                        Advice.to(Bind.class)
                            .on(
                                ElementMatchers.named("bind")
                                    .and(ElementMatchers.takesArgument(2, InetAddress.class)))))
            .installOn(instrumentation);
    loadSockets();
    // It stays changed; the classes that are yet to come need not be looked at.
    instrumentation.removeTransformer(changed);
  }

  private static void loadSockets() {
    try {
      Class.forName(SOCKETS);
    } catch (ClassNotFoundException error) {
      throw new IllegalStateException("this Java has other sockets", error);
    }
  }

  /** Its body is copied to the start of the method. */
  static final class Bind {
    private Bind() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.Argument(value = 2, readOnly = false) InetAddress address) {
      if (address.isAnyLocalAddress()) {
        address = InetAddress.getLoopbackAddress();
      }
    }
  }
}
