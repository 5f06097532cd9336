"""A model's endpoint whose certificate no known authority issued, over real TLS on loopback."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest

from newton.errors import ProviderError
from newton.providers.chat import ChatMessage
from newton.providers.model_endpoint import load_certificates
from newton.providers.openai.chat import OpenAIChat
from newton.providers.openai.embedding import OpenAIEmbedder
from newton.providers.upstreams import build_provider_upstream
from tests.unit.test_chat_model import settings

ASKED = [ChatMessage("user", "Hello")]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of no known authority, and its key beside it."""
    path = tmp_path / "cert.pem"
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(tmp_path / "key.pem"), "-out", str(path)]
    subprocess.run([*new, *files], check=True, capture_output=True)
    return path


async def test_an_untrusted_certificate_names_the_variable_that_helps(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    server = await asyncio.start_server(lambda _, writer: writer.close(), "localhost", 0, ssl=context)
    async with server:
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}/v1"
        model = OpenAIChat(build_provider_upstream("openai", settings(url)))
        with pytest.raises(ProviderError) as refused:
            [piece async for piece in model.stream(ASKED, max_tokens=50)]
        assert "is not trusted" in refused.value.what and "SSL_CERT_FILE" in refused.value.hint
        with pytest.raises(ProviderError, match="not trusted"):
            await OpenAIEmbedder(settings(url, embedding_model="tiny", embedding_dimensions=8)).embed(["x"])
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        load_certificates.cache_clear()
        with pytest.raises(ProviderError) as trusted:
            [
                piece
                async for piece in OpenAIChat(build_provider_upstream("openai", settings(url))).stream(
                    ASKED, max_tokens=50
                )
            ]
        load_certificates.cache_clear()
        assert "is not trusted" not in trusted.value.what
