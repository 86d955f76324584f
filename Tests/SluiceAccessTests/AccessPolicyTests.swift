import SluiceTLS
import SluiceWire
import Testing

@testable import SluiceAccess

@Suite("Whom a broker lets in")
struct AccessPolicyTests {
  private let policy: AccessPolicy

  init() throws {
    var policy = AccessPolicy()
    policy.users = ["alice": try .cheap("correct horse"), "bob": try .cheap("battery staple")]
    policy.permissions["alice"] = Permissions([.init(.publish, on: try TopicPattern("orders.>"))])
    policy.commonPermissions = Permissions([.init(.subscribe, on: try TopicPattern("public.>"))])
    policy.tokenKeys = ["2026": .secret(Array("a secret of at least 32 bytes, really".utf8))]
    self.policy = policy
  }

  private func authenticate(
    _ credentials: Credentials, certificate: String? = nil, until: Int64? = nil, _ policy: AccessPolicy? = nil
  ) throws(WireError) -> Identity {
    try (policy ?? self.policy).authenticate(
      credentials, peerName: certificate, peerExpires: until, now: 1_000_000)
  }

  private func refusal(
    _ credentials: Credentials, certificate: String? = nil, until: Int64? = nil, _ policy: AccessPolicy? = nil
  ) -> WireError? {
    do {
      _ = try authenticate(credentials, certificate: certificate, until: until, policy)
      return nil
    } catch {
      return error
    }
  }

  @Test("a user with the right password may do what is theirs and what is everybody's")
  func password() throws {
    let alice = try authenticate(.password("correct horse", user: "alice"))
    #expect(alice.name == "alice" && alice.proof == .password && alice.expires == nil)
    #expect(alice.permissions.rights(on: "orders.eu") == .publish)
    #expect(alice.permissions.rights(on: "public.news") == .subscribe)
    #expect(alice.permissions.rights(on: "other").isEmpty)
    let bob = try authenticate(.password("battery staple", user: "bob"))
    #expect(bob.permissions.rights(on: "orders.eu").isEmpty)
    #expect(bob.permissions.rights(on: "public.news") == .subscribe)
  }

  @Test("an unknown user, a wrong password and a wrong token get the same answer")
  func sameAnswer() {
    let wrong = refusal(.password("wrong", user: "alice"))
    #expect(wrong?.code == .authenticationFailed)
    #expect(wrong == refusal(.password("wrong", user: "nobody")))
    #expect(wrong == refusal(.password("", user: "")))
    #expect(wrong == refusal(.password("battery staple", user: "alice")))
    #expect(wrong == refusal(.token("x.y.z")))
    #expect(wrong == refusal(.password("wrong", user: "alice"), AccessPolicy()))
    // A client that names an identity must prove it, whatever its certificate.
    #expect(wrong == refusal(.password("wrong", user: "alice"), certificate: "alice"))
  }

  @Test("who says nothing is asked, unless a certificate has said it")
  func certificate() throws {
    #expect(refusal(.none)?.code == .authenticationRequired)
    let alice = try authenticate(.none, certificate: "alice", until: 1_000_001)
    #expect(alice.proof == .certificate && alice.expires == 1_000_001)
    #expect(alice.permissions.rights(on: "orders.eu") == .publish)
    #expect(refusal(.none, certificate: "alice", until: 1_000_000)?.code == .credentialsExpired)
    #expect(try authenticate(.none, certificate: "carol").permissions.rights(on: "orders.eu").isEmpty)
    for name in ["", "a\nb", String(repeating: "x", count: 256)] {
      #expect(refusal(.none, certificate: name)?.code == .authenticationFailed)
    }
  }

  @Test("where certificates must be listed, a name that isn't doesn't help")
  func listed() throws {
    var strict = policy
    strict.certificatesMustBeListed = true
    #expect(refusal(.none, certificate: "carol", strict)?.code == .authenticationFailed)
    #expect(try authenticate(.none, certificate: "alice", strict).name == "alice")
    #expect(try authenticate(.none, certificate: "bob", strict).name == "bob")
    let carol = try authenticate(.none, certificate: "carol")
    #expect(strict.reconsider(carol) == nil)
  }

  @Test("names that Unicode calls equivalent are two names")
  func names() throws {
    let kelvin = "\u{212A}arl"
    var policy = policy
    policy.users["Karl"] = try .cheap("password")
    policy.permissions["Karl"] = Permissions([.init(.all, on: try TopicPattern(">"))])
    #expect(kelvin == "Karl")
    #expect(refusal(.password("password", user: kelvin), policy)?.code == .authenticationFailed)
    let other = try authenticate(.none, certificate: kelvin, policy)
    #expect(other.permissions.rights(on: "orders").isEmpty)
    let karl = try authenticate(.none, certificate: "Karl", policy)
    #expect(karl.permissions.rights(on: "orders") == .all)
    #expect(karl.hasName(of: karl) && !karl.hasName(of: other))
  }

  @Test("another policy holds for those who were let in by this one")
  func reconsider() throws {
    let alice = try authenticate(.password("correct horse", user: "alice"))
    var later = policy
    later.permissions["alice"] = nil
    #expect(later.reconsider(alice)?.permissions.rights(on: "orders.eu").isEmpty == true)
    #expect(policy.reconsider(alice) == alice)
    later.users["alice"] = try .cheap("correct horse")
    #expect(later.reconsider(alice) == nil, "the password was set anew")
    later = policy
    later.users["alice"] = nil
    #expect(later.reconsider(alice) == nil)
    #expect(policy.reconsider(.anonymous) == nil)
  }

  @Test("no part of a policy is printed")
  func secrecy() {
    let text = String(reflecting: policy.users["alice"]) + "\(policy.users)"
    #expect(!text.contains("scrypt") && !text.contains("salt"))
  }
}

extension PasswordHash {
  /// A hash that costs almost nothing.
  static func cheap(_ password: String) throws -> PasswordHash {
    try #require(PasswordHash(of: password, cost: .init(logN: 4, r: 1, p: 1)))
  }
}
