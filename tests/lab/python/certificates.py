"""TLS for the laboratory's servers: a certificate for localhost, and an authority made for it alone.

    certificates.py FOLDER

makes FOLDER/ca.pem if there is none, and each time a new FOLDER/server.crt and FOLDER/server.key that it vouches for.
"""

import datetime
import ipaddress
import pathlib
import ssl
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def tls_context(folder):
    """The server's side of TLS. The authority's certificate lies in FOLDER/ca.pem; what exists already is kept."""
    if not (folder / "server.crt").exists():
        renew(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    return context


def renew(folder):
    """A new certificate and key, of the authority that is there already or of a new one."""
    authority_name, name = named("Lab authority"), named("Lab server")
    key = ec.generate_private_key(ec.SECP256R1())
    if (folder / "ca.key").exists():
        authority_key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    else:
        authority_key = ec.generate_private_key(ec.SECP256R1())
        authority = certificate(authority_name, authority_key, authority_name, authority_key, True)
        (folder / "ca.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
        (folder / "ca.key").write_bytes(private(authority_key))
    server = certificate(name, key, authority_name, authority_key, False)
    # Each file as a whole, as those do who renew certificates.
    for file, content in [("server.crt", server.public_bytes(serialization.Encoding.PEM)), ("server.key", private(key))]:
        (folder / "new").write_bytes(content)
        (folder / "new").replace(folder / file)


def private(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def named(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(name, key, issuer, issuer_key, authority):
    """A certificate for one day."""
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


if __name__ == "__main__":
    renew(pathlib.Path(sys.argv[1]))
