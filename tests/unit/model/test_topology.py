"""What exists never shows a key."""

from outlast.model.ids import CredentialId, ProviderName
from outlast.model.topology import Credential, Origin, Provider


def test_a_key_is_in_no_repr():
    credential = Credential(CredentialId("p#0"), "sk-canary")
    provider = Provider(
        ProviderName("p"),
        "P",
        "p",
        "openai",
        Origin("https", "h", 443),
        "/v1",
        credential,
        headers=((b"x-secret", b"canary-header"),),
    )
    assert "canary" not in repr(credential) + repr(provider) + str([provider])
