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
  private LoopbackOnly() {}

  /** Called by the JVM before main. */
  public static void premain(String arguments, Instrumentation instrumentation) {
    new AgentBuilder.Default()
        .disableClassFormatChanges()
        .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
        .ignore(ElementMatchers.none())
        .type(ElementMatchers.named("sun.nio.ch.Net"))
        .transform(
            (builder, type, loader, module, domain) ->
                builder.visit(
                    Advice.to(Bind.class)
                        .on(
                            ElementMatchers.named("bind")
                                .and(ElementMatchers.takesArgument(2, InetAddress.class)))))
        .installOn(instrumentation);
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
