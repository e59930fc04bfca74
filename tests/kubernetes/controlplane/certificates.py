"""The certificate of the servers of one control plane, and its token key."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_NAMES = ("localhost", "kubernetes", "kubernetes.default.svc")
_LIFETIME = timedelta(days=2)
_SKEW = timedelta(minutes=5)  # a clock that is set back a little must not break a running test


@dataclass(frozen=True)
class Certificates:
    """Files of one control plane. All servers on 127.0.0.1 (API server, webhooks)
    share the serving certificate; `token_key` signs the tokens of service accounts."""

    authority: Path
    serving: Path
    serving_key: Path
    token_key: Path


def make_certificates(directory: Path) -> Certificates:
    """Write fresh ones into `directory`: the serving certificate is its own authority."""
    own = directory / "server.crt"
    files = Certificates(own, own, directory / "server.key", directory / "sa.key")
    key = ec.generate_private_key(ec.SECP256R1())
    files.serving.write_bytes(self_signed(key, _NAMES, _LIFETIME))
    write_key(files.serving_key, key)
    write_key(files.token_key, rsa.generate_private_key(public_exponent=65537, key_size=2048))
    return files


def self_signed(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, names: Iterable[str], lifetime: timedelta
) -> bytes:
    """A certificate for these names and 127.0.0.1 that is its own authority."""
    now = datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    uses = dict.fromkeys(("digital_signature", "key_cert_sign", "crl_sign"), True)
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    uses |= dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    return (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**uses), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([*map(x509.DNSName, names), address]), critical=False
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )


def write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    how = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, *how))
