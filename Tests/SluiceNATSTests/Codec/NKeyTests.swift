import EngineTestSupport
import TestSupport
import Testing

@testable import SluiceNATS

@Suite("Keys and credentials of NATS")
struct NKeyTests {
  @Test(
    "a seed gives the public key that other libraries give",
    arguments: [
      (
        "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY",
        "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4", NKey.Kind.user
      ),
      (
        "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU",
        "UCK5N7N66OBOINFXAYC2ACJQYFSOD4VYNU6APEJTAVFZB2SVHLKGEW7L", .user
      ),
      (
        "SOAELH6NJCEK4HST5644G4HK7TOAFZGRRJHNM4EUKUY7PPNDLIKO5IH4JM",
        "ODPWIBQJVIQ42462QAFI2RKJC4RZHCQSIVPRDDHWFCJAP52NRZK6Z2YC", .operator
      ),
    ])
  func publicKeys(seed: String, publicKey: String, kind: NKey.Kind) throws {
    let key = try NKey(seed: " \(seed)\r\n")
    #expect(key.publicText == publicKey)
    #expect(key.kind == kind)
  }

  @Test(
    "a nonce's signature is the one that other libraries make",
    arguments: [
      (
        "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU", "PXoWU7zWAMt75FY",
        "ZaAiVDgB5CeYoXoQ7cBCmq-ZllzUnGUoDVb8C7PilWvCs8XKfUchAUhz2P4BYAF--Dg3w05CqyQFRDiGL6LrDw"
      ),
      (
        "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU", "iBFByN3zQjAT7dQ",
        "kagPGrixaWS5yuHqw9nTQrda1Q376fK3fRCGtYdF4_w2aSk-4O7Ca0JM0qvzm69HH6MoMps2yF6Q0Qs830JZCA"
      ),
      (
        "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY", "DhXdTMAeiHhLDig",
        "WosANJXgeyxerXFo0twRiMG-_ZjYp1K_46bFeFax705yFTCTjM18jWl01gGYk4KKbadiHd-hP3WgUQ2iLZUAAA"
      ),
    ])
  func signatures(seed: String, nonce: String, signature: String) throws {
    let connect = try NATSConnectOptions(
      name: "t", isSecure: false, credentials: .nkey(NKey(seed: seed)), nonce: nonce)
    #expect(connect.sig == signature)
    #expect(connect.nkey?.first == "U")
  }

  @Test(
    "a seed that was changed, cut or isn't one is refused without being repeated",
    arguments: [
      "", "SU", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VZ",
      "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3V",
      "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VX",
      "suacssl3uahudxkfsnvuzrf5uhpmwz6bfdtj7m6usdxiednppqyyycu3vy",
      "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4",
      String(repeating: "A", count: 1_000),
    ])
  func badSeeds(seed: String) {
    let error = #expect(throws: NATSError.self) { try NKey(seed: seed) }
    #expect(error?.code == .invalidCredentials)
    if seed.count > 10 { #expect(error?.description.contains(seed) == false) }
  }

  private static let file = """
    -----BEGIN NATS USER JWT-----
    eyJ0.eyJq.c2ln
    ------END NATS USER JWT------

    ************************* IMPORTANT *************************
    NKEY Seed printed below can be used to sign and prove identity.

    -----BEGIN USER NKEY SEED-----
    SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY
    ------END USER NKEY SEED------

    *************************************************************
    """

  @Test("a credentials file has a token and the seed that belongs to it")
  func credentialsFile() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("user.creds")
    try write(Self.file, to: path)
    guard case .signedToken(let jwt, let key) = try NATSCredentialsSource.file(path).credentials() else {
      Issue.record("the file has other credentials")
      return
    }
    #expect(jwt == "eyJ0.eyJq.c2ln")
    #expect(key.publicText == "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4")
    let connect = try NATSConnectOptions(
      name: "t", isSecure: true, credentials: .signedToken(jwt: jwt, key), nonce: "n")
    #expect(connect.jwt == jwt)
    #expect(connect.nkey == nil)
    #expect(connect.sig != nil)
  }

  @Test("a file with a seed alone is an nkey's")
  func seedFile() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("user.nk")
    try write("SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n", to: path)
    guard case .nkey = try NATSCredentialsSource.seedFile(path).credentials() else {
      Issue.record("the file has other credentials")
      return
    }
  }

  @Test("a password and a token are read from their files each time")
  func secretFiles() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("secret")
    for (contents, secret) in [("one\n", "one"), ("two\r\nmore\n", "two"), ("three", "three")] {
      try write(contents, to: path)
      guard
        case .password("u", secret) = try NATSCredentialsSource.passwordFile(user: "u", path).credentials(),
        case .token(secret) = try NATSCredentialsSource.tokenFile(path).credentials()
      else {
        Issue.record("the file has other credentials than \(secret)")
        return
      }
    }
    try write("\nsecret\n", to: path)
    let error = #expect(throws: NATSError.self) { try NATSCredentialsSource.tokenFile(path).credentials() }
    #expect(error?.code == .invalidCredentials && error?.description.contains(path) == true)
  }

  @Test("a file that isn't there or has something else is named in the error")
  func badFiles() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("bad.creds")
    for contents in [
      nil, "", "hello", String(Self.file.prefix(60)), Self.file.replacing("eyJ0.eyJq.c2ln", with: "a\"b"),
    ] {
      if let contents { try write(contents, to: path) }
      let error = #expect(throws: NATSError.self) { try NATSCredentialsSource.file(path).credentials() }
      #expect(error?.code == .invalidCredentials)
      #expect(error?.description.contains(path) == true)
    }
  }
}
