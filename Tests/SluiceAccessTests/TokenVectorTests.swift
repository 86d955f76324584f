import SluiceTLS
import TestSupport
import Testing

@testable import SluiceAccess

/// The examples of RFC 7515 and RFC 8037. Their headers name no key, so only signatures are verified.
@Suite("Tokens of the standards")
struct TokenVectorTests {
  private func parts(_ token: String) throws -> (signed: [UInt8], signature: [UInt8]) {
    let dot = try #require(token.lastIndex(of: "."))
    return (
      Array(token[..<dot].utf8), try #require(Base64Text.url.decode(token[token.index(after: dot)...].utf8))
    )
  }

  private func pem(_ der: [UInt8], _ what: String) -> [UInt8] {
    var body = Base64Text.standard.encode(der)
    while body.utf8.count % 4 != 0 { body += "=" }
    return Array("-----BEGIN \(what)-----\n\(body)\n-----END \(what)-----\n".utf8)
  }

  private func decoded(_ text: String) throws -> [UInt8] { try #require(Base64Text.url.decode(text.utf8)) }

  private func expect(_ token: String, isOf key: TokenKey) throws {
    let (signed, signature) = try parts(token)
    #expect(key.verify(signature, of: signed))
    for index in [0, signature.count / 2, signature.count - 1] {
      var other = signature
      other[index] ^= 1
      #expect(!key.verify(other, of: signed))
    }
    #expect(!key.verify(signature, of: signed + [0]))
    #expect(!key.verify(signature.dropLast(), of: signed))
    #expect(!key.verify([], of: signed))
  }

  @Test("RFC 7515, A.1: HS256")
  func hs256() throws {
    let key = TokenKey.secret(
      try decoded("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"))
    try expect(
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
      isOf: key)
  }

  @Test("RFC 7515, A.2: RS256")
  func rs256() throws {
    let modulus = try decoded(
      "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
    )
    // SubjectPublicKeyInfo of a modulus of 256 bytes and the exponent 65537.
    let der =
      [UInt8](hex: "30820122 300d 06092a864886f70d010101 0500 0382010f00 3082010a 0282010100") + modulus
      + [UInt8](hex: "0203010001")
    try expect(
      "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
      isOf: try .publicKey(pem: pem(der, "PUBLIC KEY")))
  }

  @Test("RFC 8037, A.4: Ed25519, which signs the same text in the same way each time")
  func ed25519() throws {
    let token =
      "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    let publicBytes = try decoded("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
    let privateBytes = try decoded("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
    let publicDER = [UInt8](hex: "302a 3005 06032b6570 032100") + publicBytes
    try expect(token, isOf: try .publicKey(pem: pem(publicDER, "PUBLIC KEY")))
    let privateDER = [UInt8](hex: "302e 020100 3005 06032b6570 0422 0420") + privateBytes
    let signer = try TokenSigner(pem(privateDER, "PRIVATE KEY"))
    let (signed, signature) = try parts(token)
    #expect(signer.sign(signed) == signature)
  }
}
