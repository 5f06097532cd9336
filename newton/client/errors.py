"""The exception of the clients."""


class ApiError(Exception):
    """Error of a failed request, with the problem and the remedy.

    `code` identifies the error and does not change; the documentation lists those of the daemon. The client adds
    `daemon_unreachable`, `connection_lost` (the connection broke during a reply), `unexpected_response` (the
    response is not from a Newton daemon of this version) and `config_error` (an argument or a variable is missing or
    invalid). `title` is the meaning of the code, `detail` the problem and `hint` the remedy. `status` is the HTTP
    status, or None if there was no response.
    """

    def __init__(self, code: str, detail: str, *, hint: str, title: str = "", status: int | None = None) -> None:
        super().__init__(f"{detail} {hint}")
        self.code, self.title, self.detail, self.hint, self.status = code, title, detail, hint, status
