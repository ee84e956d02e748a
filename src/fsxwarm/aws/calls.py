"""Calling AWS from an event loop: threads, retries, and errors made into a few kinds.

boto3 is imported with the first call, never before: commands that do not need AWS do not wait for it. Each call has a
daemon thread of its own, a bounded number at a time, so that a connection that hangs cannot keep a command from
leaving.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from fsxwarm import __version__
from fsxwarm.aws.tally import THROTTLED, CallCounter
from fsxwarm.ports.cloud import CloudError, Fault

T = TypeVar("T")

_ATTEMPTS: Final = 6
_MOST_BODY: Final = 2**24
_CODES: Final = {
    "AccessDenied": Fault.DENIED,
    "AccessDeniedException": Fault.DENIED,
    "UnauthorizedOperation": Fault.DENIED,
    "403": Fault.DENIED,
    "ExpiredToken": Fault.EXPIRED,
    "ExpiredTokenException": Fault.EXPIRED,
    "RequestExpired": Fault.EXPIRED,
    "TokenRefreshRequired": Fault.EXPIRED,
    "InvalidClientTokenId": Fault.NO_CREDENTIALS,
    "UnrecognizedClientException": Fault.NO_CREDENTIALS,
    "InvalidAccessKeyId": Fault.NO_CREDENTIALS,
    "SignatureDoesNotMatch": Fault.NO_CREDENTIALS,
    "404": Fault.NOT_FOUND,
    "NoSuchKey": Fault.NOT_FOUND,
    "NoSuchBucket": Fault.NOT_FOUND,
    "FileSystemNotFound": Fault.NOT_FOUND,
    "DataRepositoryTaskNotFound": Fault.NOT_FOUND,
    "DataRepositoryAssociationNotFound": Fault.NOT_FOUND,
    "ResourceNotFoundException": Fault.NOT_FOUND,
    **dict.fromkeys((*THROTTLED, "503"), Fault.THROTTLED),
    "DataRepositoryTaskExecuting": Fault.BUSY,
    "BadRequest": Fault.INVALID,
    "ValidationException": Fault.INVALID,
    "InvalidParameterException": Fault.INVALID,
    "UnsupportedOperation": Fault.INVALID,
    "IncompatibleParameterError": Fault.INVALID,
}
_EXCEPTIONS: Final = {
    "NoCredentialsError": Fault.NO_CREDENTIALS,
    "PartialCredentialsError": Fault.NO_CREDENTIALS,
    "ProfileNotFound": Fault.NO_CREDENTIALS,
    "ConfigParseError": Fault.NO_CREDENTIALS,
    "NoRegionError": Fault.NO_REGION,
    "CredentialRetrievalError": Fault.EXPIRED,
    "TokenRetrievalError": Fault.EXPIRED,
    "SSOTokenLoadError": Fault.EXPIRED,
    "UnauthorizedSSOTokenError": Fault.EXPIRED,
    "ParamValidationError": Fault.INVALID,
}


class Calls:
    """Makes calls, at most `parallel` at a time.

    Throttling and passing errors are retried by botocore in its adaptive mode, which also slows down by itself. When
    credentials expire in the middle, `say` is told once and the call is made anew every `renew_every` seconds with
    what the environment, profile or instance has by then, for `patience` seconds at most.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        region: str = "",
        parallel: int = 8,
        renew_every: float = 10.0,
        patience: float = 900.0,
        timeout: float = 20.0,
    ) -> None:
        self._say = say
        self._region = region
        self._parallel = parallel
        self._slots = asyncio.Semaphore(parallel)
        self._renew_every = renew_every
        self._patience = patience
        self._timeout = timeout
        self._lock = threading.Lock()
        self.counter = CallCounter()
        self._session: Any = None
        self._clients: dict[str, Any] = {}
        self._worked = False
        self._waiting = False

    async def call(self, service: str, operation: str, action: str, **fields: Any) -> Any:
        """Call `operation` of a service's client with `fields`; returns the answer. Raises CloudError.

        `action` is the IAM action that the call needs, for messages and policies. A body comes as bytes, the first
        16 MiB of it at most.
        """
        deadline: float | None = None
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with self._slots:
                    answer = await _in_thread(lambda: self._call(service, operation, action, fields))
            except CloudError as error:
                if error.fault is not Fault.EXPIRED or not self._worked:
                    raise
                deadline = loop.time() + self._patience if deadline is None else deadline
                if loop.time() >= deadline:
                    raise
                if not self._waiting:
                    self._waiting = True
                    self._say(f"AWS credentials have expired: waiting until they are renewed ({error.advice})")
            else:
                if self._waiting:
                    self._waiting = False
                    self._say("AWS credentials are valid again")
                self._worked = True
                return answer
            await asyncio.sleep(self._renew_every)
            self._forget()

    def _call(self, service: str, operation: str, action: str, fields: dict[str, Any]) -> Any:
        from botocore.exceptions import (  # noqa: PLC0415 - slow to import, and not needed without AWS
            BotoCoreError,
            ClientError,
        )

        result = "ok"
        self.counter.begin(action)
        try:
            answer = getattr(self._client(service), operation)(**fields)
            if "Body" in answer:  # what is not read here would be read by the loop
                with answer["Body"] as body:
                    answer["Body"] = body.read(_MOST_BODY)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            message = str(error.response.get("Error", {}).get("Message", ""))
            result = fault = _CODES.get(code, Fault.OTHER)
            raise CloudError(fault, action, code, message) from None
        except BotoCoreError as error:
            result = fault = _fault(error)
            raise CloudError(fault, action, type(error).__name__, str(error)) from None
        else:
            return answer
        finally:
            self.counter.end(action, result)

    def _client(self, service: str) -> Any:
        with self._lock:  # sessions are not safe to make clients from several threads
            known = self._clients.get(service)
            if known is None:
                known = self._clients[service] = self._new_client(service)
            return known

    def _new_client(self, service: str) -> Any:
        import boto3.session  # noqa: PLC0415 - slow to import, and not needed without AWS
        from botocore.config import Config  # noqa: PLC0415 - the same

        if self._session is None:
            self._session = boto3.session.Session()
        config = Config(
            retries={"mode": "adaptive", "total_max_attempts": _ATTEMPTS},
            connect_timeout=5,
            read_timeout=self._timeout,
            max_pool_connections=self._parallel,
            user_agent_extra=f"fsxwarm/{__version__}",
        )
        client = self._session.client(service, region_name=self._region or None, config=config)
        client.meta.events.register("needs-retry", self.counter.answered)
        return client

    def _forget(self) -> None:
        with self._lock:
            self._session = None
            self._clients.clear()


def _fault(error: Exception) -> Fault:
    for kind in type(error).__mro__:
        if kind.__name__ in _EXCEPTIONS:
            return _EXCEPTIONS[kind.__name__]
        if kind.__name__ in {"HTTPClientError", "ConnectionError", "EndpointConnectionError"}:
            return Fault.UNREACHABLE
    return Fault.OTHER


async def _in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a daemon thread of its own; when nobody waits any more, its result is dropped."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[], None]) -> None:
        if not future.done():
            set_it()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - handed over to who waits
            failure = error
            told = lambda: settle(lambda: future.set_exception(failure))  # noqa: E731 - bound to this error
        else:
            told = lambda: settle(lambda: future.set_result(result))  # noqa: E731 - bound to this result
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(told)
            except RuntimeError:  # the loop was closed in between: nobody waits
                return

    threading.Thread(target=run, name="fsxwarm-aws", daemon=True).start()
    return await future
