"""A throwaway certificate authority and contexts that trust it, all in a temporary folder."""

import datetime
import ipaddress
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID_FROM = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
VALID_UNTIL = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)


class Authority:
    def __init__(self, folder):
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "throwaway")])
        builder = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self._certificate = builder.sign(self._key, hashes.SHA256())

    def server_context(self, *names):
        """A server that is certified for `names` (host names or addresses)."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        certificate = (
            self._builder(subject, key)
            .add_extension(alternatives, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        file = self._folder / f"{names[0].replace(':', '_')}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def client_context(self):
        """A client that verifies, and trusts this authority only."""
        pem = self._certificate.public_bytes(serialization.Encoding.PEM).decode()
        context = ssl.create_default_context(cadata=pem)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _builder(self, subject, key):
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(VALID_FROM)
            .not_valid_after(VALID_UNTIL)
        )


def _general_name(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
