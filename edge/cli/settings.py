"""
What an installation may set, from environment variables that start with AIVEDIO_.

Only values and their shapes live here. Which of them a process needs is decided where the
process is started (`edge.cli.processes`), through `required`.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    IPvAnyNetwork,
    SecretStr,
    ValidationError,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from relay.buses import Rocketmq

PREFIX = "AIVEDIO_"


class BadSettings(Exception):
    """The environment does not describe a runnable installation; the text says what to set."""


def _web_url(value: str) -> str:
    url = urlsplit(value)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("must be like https://aivedio.example.com")
    if url.query or url.fragment:
        raise ValueError("must have no ?query and no #fragment")
    return value.rstrip("/")


def _database_url(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().startswith(("postgresql://", "postgres://")):
        raise ValueError("must be like postgresql://user:password@host:5432/dbname")
    return value


def _redis_url(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("must be like redis://:password@host:6379/0")
    return value


def _listen(value: str) -> str:
    host, separator, port = value.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError("must be host:port, like 127.0.0.1:8080 or [::]:8080")
    return value


def _addresses(values: list[str]) -> list[str]:
    for value in values:
        host, separator, port = value.rpartition(":")
        if not separator or not host or "/" in host or not port.isdecimal() or int(port) > 65535:
            raise ValueError("must be host:port, or several with commas between them")
    return values


def _listed(value: Any) -> Any:
    if isinstance(value, str):
        return [part for part in value.replace(",", " ").replace(";", " ").split() if part]
    return value


Addresses = Annotated[list[str], NoDecode, BeforeValidator(_listed), AfterValidator(_addresses)]


class Settings(BaseSettings):
    """One field for each AIVEDIO_ variable; every one has a default or is asked for when needed."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", env_ignore_empty=True)

    database_url: Annotated[SecretStr, AfterValidator(_database_url)] | None = Field(
        default=None, description="PostgreSQL 15 or newer, direct (no transaction pooler)"
    )
    redis_url: Annotated[SecretStr, AfterValidator(_redis_url)] | None = Field(
        default=None, description="Redis or Valkey, used for Pub/Sub only"
    )
    rocketmq_endpoints: Addresses = Field(
        default_factory=list,
        description="gRPC proxies of a RocketMQ 5 cluster; without them the bus is pgmq",
    )
    rocketmq_name_servers: Addresses = Field(
        default_factory=list, description="its name servers, which `aivedio topics create` asks"
    )
    rocketmq_prefix: str = Field(
        default="aivedio",
        pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,40}$",
        description="how the names of our topic and groups begin in that cluster",
    )
    rocketmq_access_key: str | None = Field(default=None, description="user of that cluster")
    rocketmq_secret_key: SecretStr | None = Field(default=None, description="and its password")
    rocketmq_tls: bool = Field(default=False, description="speak TLS with its proxies")
    dispatch_mode: Literal["broadcast", "directed"] = Field(
        default="broadcast",
        description="events go to every gateway, or to those that follow their project",
    )
    public_url: Annotated[str, AfterValidator(_web_url)] | None = Field(
        default=None, description="the gateway as browsers see it"
    )
    callback_url: Annotated[str, AfterValidator(_web_url)] | None = Field(
        default=None, description="the webhook edge as providers see it"
    )
    webhook_listen: Annotated[str, AfterValidator(_listen)] = Field(
        default="127.0.0.1:8081", description="where the webhook edge listens"
    )
    webhook_tls_cert: Path | None = Field(
        default=None, description="PEM chain, if the webhook edge is to speak TLS itself"
    )
    webhook_tls_key: Path | None = Field(
        default=None, description="PEM key that belongs to AIVEDIO_WEBHOOK_TLS_CERT"
    )
    gateway_listen: Annotated[str, AfterValidator(_listen)] = Field(
        default="127.0.0.1:8080", description="where the gateway listens"
    )
    console_listen: Annotated[str, AfterValidator(_listen)] = Field(
        default="127.0.0.1:8084", description="where the operators' page listens"
    )
    console_url: Annotated[str, AfterValidator(_web_url)] | None = Field(
        default=None, description="the operators' page as their browsers see it"
    )
    admin_port: int = Field(
        default=0, ge=0, le=65535, description="port of /live, /ready and /metrics; 0 is none"
    )
    admin_host: str = Field(
        default="127.0.0.1", description="address of that port; it is no secret and no interface"
    )
    jwt_secret: SecretStr | None = Field(
        default=None,
        min_length=32,
        description="key of HS256 session tokens, 32 characters or more",
    )
    jwt_secret_previous: SecretStr | None = Field(
        default=None, min_length=32, description="the key before it, while its tokens last"
    )
    jwt_public_keys: Annotated[list[Path], NoDecode, BeforeValidator(_listed)] = Field(
        default_factory=list, description="PEM files with the keys of RS256 and ES256 tokens"
    )
    jwt_jwks_url: Annotated[str, AfterValidator(_web_url)] | None = Field(
        default=None, description="where the keys of RS256 and ES256 tokens are published"
    )
    jwt_issuer: str | None = Field(default=None, description="iss of RS256 and ES256 tokens")
    jwt_audience: str | None = Field(default=None, description="aud of RS256 and ES256 tokens")
    most_streams: int = Field(
        default=20_000, gt=0, description="streams that one gateway process holds"
    )
    most_streams_of_tenant: int = Field(
        default=20_000, gt=0, description="of them, those of one tenant"
    )
    most_streams_of_user: int = Field(default=50, gt=0, description="of them, those of one user")
    most_streams_of_device: int = Field(
        default=20, gt=0, description="of them, those of one session"
    )
    trusted_proxies: Annotated[list[IPvAnyNetwork], NoDecode, BeforeValidator(_listed)] = Field(
        default_factory=list, description="networks whose X-Forwarded-* headers are believed"
    )
    consume_groups: Annotated[list[str], NoDecode, BeforeValidator(_listed)] = Field(
        default_factory=lambda: ["media", "billing"],
        description="consumer groups that `aivedio consume` serves",
    )
    local: bool = Field(
        default=False, description="this is one private machine: plain http is allowed"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="lowest level that is logged"
    )
    proxy_idle_seconds: float | None = Field(
        default=None, gt=0, description="how long the proxies before the gateway let a stream idle"
    )
    encryption_at_rest: str | None = Field(
        default=None, description="what encrypts the database's volume, for `aivedio doctor`"
    )
    drain_seconds: float = Field(
        default=5.0, ge=0, le=300, description="how long a stopping gateway still takes in clients"
    )

    @property
    def proxies(self) -> list[IPv4Network | IPv6Network]:
        """The trusted networks as the standard library's type."""
        return list(self.trusted_proxies)

    @property
    def rocketmq(self) -> Rocketmq | None:
        """The RocketMQ cluster that is the bus, if one is named."""
        if not self.rocketmq_endpoints:
            return None
        secret = self.rocketmq_secret_key
        return Rocketmq(
            self.rocketmq_endpoints,
            self.rocketmq_prefix,
            self.rocketmq_access_key,
            secret.get_secret_value() if secret else None,
            self.rocketmq_tls,
        )


def load() -> Settings:
    """
    Read the settings from the environment.

    Raises BadSettings with one line for each wrong variable, never with its value: values may be
    secrets.
    """
    try:
        return Settings()
    except ValidationError as error:
        lines = [_complaint(detail["loc"], detail["msg"]) for detail in error.errors()]
        raise BadSettings("Some settings cannot be used:\n\n" + "\n".join(lines)) from None


def listing(settings: Settings) -> list[str]:
    """Return two lines for each variable: its value or default, and its meaning."""
    lines = []
    for field, info in Settings.model_fields.items():
        value = getattr(settings, field)
        if isinstance(value, list):
            value = ",".join(map(str, value))
        if value in (None, ""):
            shown = "not set"
        elif field in settings.model_fields_set:
            # Secrets show as asterisks.
            shown = f"= {value}"
        else:
            shown = f"is {value} unless set"
        lines += [f"{PREFIX}{field.upper()} {shown}", f"    {info.description}"]
    return lines


def required(settings: Settings, *fields: str) -> None:
    """Raise BadSettings, naming every variable among `fields` that is not set."""
    missing = [field for field in fields if not getattr(settings, field)]
    if missing:
        lines = [_explain(field) for field in missing]
        raise BadSettings(
            "This command needs:\n\n"
            + "\n".join(lines)
            + "\n\nSet it in the environment, or run `aivedio up`, which brings its own servers."
        )


def _complaint(location: tuple[int | str, ...], message: str) -> str:
    field = str(location[0])
    return f"{_explain(field)}\n      now: {message.removeprefix('Value error, ')}"


def _explain(field: str) -> str:
    info = Settings.model_fields.get(field)
    return f"  {PREFIX}{field.upper()}  {info.description if info else ''}"
