"""The file that says which model answers under which name.

[models.analyst]                        # the name that behaviors ask
provider = "openai"                     # chat completions; or "anthropic"
base_url = "http://127.0.0.1:11434/v1"
model = "llama3.1"
key_env = "MY_PROVIDER_KEY"             # the environment variable that holds the key, where one is needed

[models.analyst.prices]                 # for a million tokens, in a currency of your choice
input = 0.5
output = 1.5
"""

from __future__ import annotations

import ipaddress
import logging
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from forktrail_behaviors.effects import Model
from forktrail_schemas.errors import ForktrailError, InvalidInput, NotFound

BASE_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
_Price = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PricesGiven(_Strict):
    """Prices for a million tokens."""

    input: _Price
    output: _Price
    cached: _Price | None = None


class ModelGiven(_Strict):
    """One model of the file."""

    provider: Literal["openai", "anthropic"]
    model: Annotated[str, Field(min_length=1)]
    base_url: str | None = None
    key_env: str | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = 120.0
    attempts: Annotated[int, Field(ge=1, le=20)] = 4
    body_bytes_max: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 16_000_000
    allow_plain_http: bool = False
    prices: PricesGiven | None = None


class _File(_Strict):
    models: dict[str, ModelGiven]


def load_models(path: Path, environ: Mapping[str, str]) -> list[Model]:
    """The models that a file names.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it isn't as it should be, or a key's variable isn't set.
        ForktrailError: what speaks HTTP isn't installed.
    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", hint="name a file of models with --models") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} can't be read: {type(error).__name__}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is no TOML: {error}") from None
    try:
        file = _File.model_validate(told)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"]))
        raise InvalidInput(f"{path}: {where}: {fault['msg']}", hint="the README shows such a file") from None
    return [_model(path, name, given, environ) for name, given in file.models.items()]


def _model(path: Path, name: str, given: ModelGiven, environ: Mapping[str, str]) -> Model:
    try:
        from forktrail_behaviors.models.anthropic import AnthropicMessages
        from forktrail_behaviors.models.openai import OpenAiChat
        from forktrail_behaviors.models.prices import Prices
        from forktrail_behaviors.models.provider import HttpModel
        from forktrail_behaviors.models.secret import Secret
        from forktrail_behaviors.models.sending import Limits, Sender
    except ModuleNotFoundError as error:
        raise ForktrailError(
            f"models need the package {error.name}", code="extra_missing", hint="pip install 'forktrail[models]'"
        ) from error
    key = _key(path, name, given, environ)
    base = (given.base_url or BASE_URLS[given.provider]).rstrip("/")
    _check_address(path, name, base, plain_allowed=given.allow_plain_http or not key)
    for library in ("httpx", "httpcore"):
        # At DEBUG they tell every header, and a careless provider may repeat the key in one.
        logging.getLogger(library).setLevel(logging.WARNING)
    protocol = AnthropicMessages() if given.provider == "anthropic" else OpenAiChat()
    limits = Limits(given.timeout_seconds, given.attempts, given.body_bytes_max)
    sender = Sender(base + protocol.path, protocol.headers(key), limits)
    prices = Prices(given.prices.input, given.prices.output, given.prices.cached) if given.prices else None
    return HttpModel(name, given.model, protocol, sender, Secret(key), prices)


def _key(path: Path, name: str, given: ModelGiven, environ: Mapping[str, str]) -> str:
    if given.key_env is None:
        return ""
    key = environ.get(given.key_env, "").strip()
    if not key:
        raise InvalidInput(f"{path}: models.{name}: {given.key_env} isn't set", hint="put the provider's key into it")
    if not key.isascii() or not key.isprintable():
        raise InvalidInput(f"{path}: models.{name}: what {given.key_env} holds is no key")
    return key


def _check_address(path: Path, name: str, url: str, *, plain_allowed: bool) -> None:
    """Refuse an address that is none, that holds a password, or that would send a key in the clear."""
    parts: Any = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"{path}: models.{name}: base_url is no http address", hint="like https://host/v1")
    if parts.username is not None or parts.query:
        raise InvalidInput(f"{path}: models.{name}: base_url holds more than an address", hint="keys go into key_env")
    if parts.scheme == "http" and not plain_allowed and not _is_loopback(parts.hostname):
        raise InvalidInput(
            f"{path}: models.{name}: the key would go over plain http", hint="use https, or allow_plain_http = true"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
