import TestSupport
import Testing

@testable import SluiceTLS

@Suite("Hashes and signatures")
struct PrimitivesTests {
  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  @Test(
    "scrypt derives what RFC 7914 says",
    arguments: [
      (
        "", "", 4, 1, 1,
        "77d6576238657b203b19ca42c18a0497 f16b4844e3074ae8dfdffa3fede21442 fcd0069ded0948f8326a753a0fc81f17 e8d3e0fb2e0d3628cf35e20c38d18906"
      ),
      (
        "password", "NaCl", 10, 8, 16,
        "fdbabe1c9d3472007856e7190d01e9fe 7c6ad7cbc8237830e77376634b373162 2eaf30d92e22a3886ff109279d9830da c727afb94a83ee6d8360cbdfa2cc0640"
      ),
      (
        "pleaseletmein", "SodiumChloride", 14, 8, 1,
        "7023bdcb3afd7348461c06cd81fd38eb fda8fbba904f8e3ea9b543f6545da1f2 d5432955613f0fcf62d49705242a9af9 e61e85dc0d651e40dfcf017b45575887"
      ),
    ])
  func scrypt(password: String, salt: String, logN: Int, r: Int, p: Int, key: String) {
    let cost = Scrypt.Cost(logN: logN, r: r, p: p)
    #expect(
      Scrypt.derive(password: password.utf8, salt: bytes(salt), cost: cost, count: 64) == [UInt8](hex: key))
  }

  @Test("what would take gigabytes or minutes isn't begun")
  func unbearable() {
    let table = [
      (0, 8, 1), (21, 8, 1), (63, 1, 1), (64, 1, 1), (Int.max, 1, 1), (Int.min, 1, 1), (-1, 8, 1), (15, 0, 1),
      (15, 8, 0), (15, -1, 1), (15, 8, -1), (15, Int.max, 1), (15, 8, Int.max), (20, 32, 16), (20, 8, 1),
      (15, 16, 16), (10, 33, 1), (10, 8, 17),
    ]
    for (logN, r, p) in table {
      let cost = Scrypt.Cost(logN: logN, r: r, p: p)
      #expect(!cost.isBearable, "\(cost)")
      #expect(Scrypt.derive(password: [], salt: [], cost: cost, count: 32) == nil)
    }
    #expect(Scrypt.Cost.standard.isBearable)
    // The rules forbid N = 2¹⁶ for r = 1.
    let forbidden = Scrypt.Cost(logN: 16, r: 1, p: 1)
    #expect(Scrypt.derive(password: [], salt: [], cost: forbidden, count: 32) == nil)
    #expect(Scrypt.derive(password: [], salt: [], cost: .init(logN: 4, r: 1, p: 1), count: 0) == nil)
  }

  @Test("SHA-256 and HMAC give what FIPS 180 and RFC 4231 say")
  func digests() {
    #expect(
      sha256(bytes("abc"))
        == [UInt8](hex: "ba7816bf 8f01cfea 414140de 5dae2223 b00361a3 96177a9c b410ff61 f20015ad"))
    #expect(
      hmacSHA256(bytes("Hi There"), key: [UInt8](repeating: 0x0B, count: 20))
        == [UInt8](hex: "b0344c61d8db38535ca8afceaf0bf12b 881dc200c9833da726e9376c2e32cff7"))
    #expect(
      hmacSHA256(bytes("what do ya want for nothing?"), key: bytes("Jefe"))
        == [UInt8](hex: "5bdcc146bf60754e6a042426089575c7 5a003f089d2739839dec58b964ec3843"))
    #expect(
      hmacSHA256([], key: [])
        == [UInt8](hex: "b613679a0814d9ec772f95d778c35fc5 ff1697c493715653c6c712144292c5ad"))
  }

  @Test(
    "what one half of a pair signs the other half verifies", arguments: [KeyKind.ed25519, .rsa(bits: 2048)])
  func pairs(kind: KeyKind) throws {
    let key = try PrivateKey.generate(kind)
    let other = try PrivateKey.generate(.ed25519)
    #expect(key.kind == kind)
    let message = bytes("message")
    var signature = try #require(key.sign(message))
    let publicKey = try PublicKey(pem: key.publicPEM)
    #expect(publicKey.kind == kind)
    #expect(publicKey.verify(signature, of: message))
    #expect(!publicKey.verify(signature, of: bytes("massage")))
    #expect(!publicKey.verify([], of: message))
    #expect(!publicKey.verify(signature + [0], of: message))
    #expect(!publicKey.verify(try #require(other.sign(message)), of: message))
    #expect(try PublicKey(pem: other.publicPEM).fingerprint != publicKey.fingerprint)
    signature[signature.count / 2] ^= 1
    #expect(!publicKey.verify(signature, of: message))
    let again = try PrivateKey(pem: key.pem)
    #expect(publicKey.verify(try #require(again.sign(message)), of: message))
    #expect(try PublicKey(pem: again.publicPEM).fingerprint == publicKey.fingerprint)
  }

  @Test("several threads use a key at once")
  func threads() throws {
    let key = try PrivateKey.generate(.ed25519)
    let publicKey = try PublicKey(pem: key.publicPEM)
    try concurrently(
      (0..<4).map { thread in
        {
          for index in 0..<50 {
            let message = [UInt8(thread), UInt8(index)]
            guard let signature = key.sign(message), publicKey.verify(signature, of: message),
              !publicKey.verify(signature, of: [UInt8(thread), UInt8(index + 1)])
            else { throw TestFailure("signatures of several threads are mixed up") }
          }
        }
      })
  }

  @Test("a key that can't be used is refused for what it is")
  func refusals() throws {
    func objection(_ pem: String) -> String? {
      do {
        _ = try PublicKey(pem: bytes(pem))
        return nil
      } catch {
        return error.description
      }
    }
    let key = try PrivateKey.generate(.ed25519)
    #expect(objection(String(decoding: key.pem, as: UTF8.self))?.hasPrefix("a private key") == true)
    #expect(objection("")?.hasPrefix("no public key in PEM") == true)
    #expect(
      objection("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")?.hasPrefix("no public")
        == true)
    #expect(objection(Self.shortRSA)?.hasPrefix("an RSA key of 1024 bits; it needs 2048 to 8192") == true)
    #expect(objection(Self.curve)?.hasPrefix("a key for EC; ") == true)
    #expect(
      throws: KeyError(
        "a key with a pass phrase; take that off with openssl pkey, and keep the file to yourself")
    ) {
      try PrivateKey(pem: bytes(Self.encrypted))
    }
    #expect(throws: KeyError.self) { try PrivateKey(pem: key.publicPEM) }
    #expect(throws: KeyError.self) { try PrivateKey.generate(.rsa(bits: 1024)) }
    #expect(throws: KeyError.self) { try PrivateKey.generate(.rsa(bits: 1 << 30)) }
  }

  @Test("random bytes are as many as asked for, and others each time")
  func random() {
    #expect(secureRandomBytes(0).isEmpty)
    #expect(secureRandomBytes(32).count == 32)
    #expect(secureRandomBytes(32) != secureRandomBytes(32))
  }

  private static let shortRSA = """
    -----BEGIN PUBLIC KEY-----
    MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCeKVihVcGlB0F9vD8K+t12KSrs
    2GgTzlfDskoi/NZqAJt6nHcHAm3g0Dl2kzfR3VPpP30r94qAPWe/iBaxG3N194LN
    wd+02Lg3MnaoyxGGzGZprU8B/Lip5IJoKzu9IXCPh2w2zUzDrepveIoTg/KQXDer
    2QXVg0QC8tvh+i909QIDAQAB
    -----END PUBLIC KEY-----

    """

  private static let curve = """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEXo25Q75toXryGlV31ihDZPJ/ytAT
    7+yVYmXAwptKvCR150RcGwGU4ioCr0M+4XZa84nx3M4R5k1JdR4Hxca5CQ==
    -----END PUBLIC KEY-----

    """

  /// A key that was made for this test.
  private static let encrypted = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAj+Ry+22hCziwICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEMZR0EtwOaSI+jYSpfcIPBQEQFhO
    iyHkdr/qcisUiwDHuNihP7kJm63s2sWMJ05sWYWtMv1m4iwrh6erA2h6z+scz0UT
    Mn9uPNZOdPDlpK/fGQ0=
    -----END ENCRYPTED PRIVATE KEY-----

    """

  @Test("a seed gives the Ed25519 key of RFC 8032, and other lengths none")
  func ed25519Seeds() throws {
    let seed = [UInt8](hex: "9d61b19deffd5a60ba844af492ec2cc4 4449c5697b326919703bac031cae7f60")
    let key = try PrivateKey(ed25519Seed: seed)
    #expect(key.kind == .ed25519)
    #expect(
      key.ed25519Public == [UInt8](hex: "d75a980182b10ab7d54bfed3c964073a 0ee172f3daa62325af021a68f707511a"))
    #expect(
      key.sign([])
        == [UInt8](
          hex:
            "e5564300c360ac729086e2cc806e828a 84877f1eb8e5d974d873e06522490155 5fb8821590a33bacc61e39701cf9b46b d25bf5f0595bbe24655141438e7a100b"
        ))
    for count in [0, 31, 33, 64] {
      #expect(throws: KeyError.self) { try PrivateKey(ed25519Seed: [UInt8](repeating: 1, count: count)) }
    }
    #expect(try PrivateKey.generate(.rsa(bits: 2048)).ed25519Public == nil)
  }
}
