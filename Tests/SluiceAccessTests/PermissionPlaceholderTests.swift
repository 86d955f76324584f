import SluiceWire
import TestSupport
import Testing

@testable import SluiceAccess

@Suite("Permissions with the names of users and clients in them")
struct PermissionPlaceholderTests {
  private func permissions(_ lines: String) throws -> PermissionsFile {
    try PermissionsFile(Array(lines.utf8), path: "permissions")
  }

  private func policy(_ lines: String) throws -> AccessPolicy {
    let file = try permissions(lines)
    var policy = AccessPolicy()
    policy.permissions = file.permissions
    policy.commonPermissions = file.commonPermissions
    return policy
  }

  /// The rights of a client that has a certificate of that name.
  private func rights(
    _ policy: AccessPolicy, _ name: String, as clientID: String = "", on topic: String
  ) throws -> Rights {
    try policy.authenticate(.none, clientID: clientID, peerName: name, peerExpires: nil, now: 0)
      .permissions.rights(on: topic)
  }

  @Test("%u and %c are whole levels with the client's names")
  func names() throws {
    let policy = try policy(
      "* publish devices.%u.%c.>\n* subscribe devices.%u.*.set\nalice create %c.own\nbob admin a%u.x 50%c")
    #expect(try rights(policy, "alice", as: "lamp", on: "devices.alice.lamp.state") == .publish)
    #expect(try rights(policy, "alice", as: "lamp", on: "devices.alice.fan.state").isEmpty)
    #expect(try rights(policy, "alice", as: "lamp", on: "devices.bob.lamp.state").isEmpty)
    #expect(try rights(policy, "alice", on: "devices.alice.lamp.set") == .subscribe)
    #expect(try rights(policy, "alice", on: "devices.alice.%c.state").isEmpty)
    #expect(try rights(policy, "alice", as: "lamp", on: "lamp.own") == .create)
    #expect(try rights(policy, "bob", as: "lamp", on: "lamp.own").isEmpty)
    // A part of a level is text as any other.
    #expect(try rights(policy, "bob", as: "x", on: "a%u.x") == .admin)
    #expect(try rights(policy, "bob", as: "x", on: "50%c") == .admin)
    #expect(try rights(policy, "bob", as: "x", on: "abob.x").isEmpty)
  }

  @Test("characters that a token can't have are escaped as in levels of MQTT")
  func escapes() throws {
    let policy = try policy("* all homes.%u.%c.>")
    for (name, token) in [
      ("alice@example.org", "alice@example%2Eorg"), ("Living Room", "Living%20Room"), ("a>", "a%3E"),
      ("50%25", "50%25"), ("a%2Eb", "a%252Eb"), ("ä", "ä"),
    ] {
      #expect(try rights(policy, name, as: "d", on: "homes.\(token).d.x") == .all, "\(name)")
      #expect(try rights(policy, "u", as: name, on: "homes.u.\(token).x") == .all, "\(name)")
    }
    // A name that looks like a placeholder has no rights by one.
    #expect(try rights(policy, "%c", as: "d", on: "homes.d.d.x").isEmpty)
    #expect(try rights(policy, "%c", as: "d", on: "homes.%c.d.x").isEmpty)
  }

  @Test(
    "no name widens a rule",
    arguments: [
      "", "*", ">", "#", "+", "a.*", "*.>", "a/+", "a/#", "a/b", "a.b", "a\0b", "..", ".", "%", "%2E", "%2A",
      "%3E", "%00", "%u", "%c", "%25c", "%u%2A", "$share", "_inbox", "mqtt", "\u{202E}", "e\u{301}",
      "\u{212A}",
      " ", "\t", "%c.%u", "*%u", "é", String(repeating: "x", count: 255), String(repeating: ".", count: 255),
    ])
  func hostileNames(name: String) throws {
    let policy = try policy("* all own.%c.>\n* all pair.%u.%c\n* all %c.root.>")
    let identity = try policy.authenticate(.none, clientID: name, peerName: "u", peerExpires: nil, now: 0)
    #expect(!identity.permissions.administerEverything)
    for rule in identity.permissions.rules {
      let tokens = rule.pattern.description.split(separator: ".", omittingEmptySubsequences: false)
      #expect(tokens.count == 3, "\(rule.pattern)")
      #expect(tokens.dropLast().allSatisfy { $0 != "*" && $0 != ">" })
      #expect(tokens.last != "*")
    }
    for topic in [
      "own.other.x", "own.victim.x", "pair.u.victim", "pair.victim.victim", "own", "own.a", "other.root.x",
      "_inbox.root.x", "$x.root.y", "mqtt.root.x", "x",
    ] {
      #expect(identity.permissions.rights(on: topic).isEmpty, "\(topic)")
    }
  }

  @Test("no two names have rights on the same topic")
  func distinctNames() throws {
    var random = TestSupport.SeededRandom.printed()
    let parts = [
      "%", "2", "5", "E", ".", "*", ">", "u", "c", "a", " ", "$", "é", "e\u{301}", "0", "25", "%2E",
    ]
    let policy = try policy("* all own.%c")
    var owners: [String: String] = [:]
    for _ in 0..<5_000 {
      let name = (0..<Int.random(in: 1...6, using: &random)).map { _ in
        parts.randomElement(using: &random)!
      }.joined()
      let identity = try policy.authenticate(.none, clientID: name, peerName: "u", peerExpires: nil, now: 0)
      guard let pattern = identity.permissions.rules.first?.pattern.description else { continue }
      #expect(!TopicPattern.hasWildcards(pattern))
      let owner = owners.updateValue(name, forKey: pattern)
      #expect(owner == nil || owner!.utf8.elementsEqual(name.utf8), "\(pattern): \(name), \(owner ?? "")")
    }
  }

  @Test("a changed policy binds the same names, and nodes tell each other the client's identifier")
  func changes() throws {
    let former = try policy("alice publish old.%c")
    let identity = try former.authenticate(.none, clientID: "d", peerName: "alice", peerExpires: nil, now: 0)
    let next = try policy("alice publish new.%c.>")
    let renewed = try #require(next.reconsider(identity))
    #expect(renewed.permissions.rights(on: "old.d").isEmpty)
    #expect(renewed.permissions.rights(on: "new.d.x") == .publish)
    #expect(CarriedPermissions.encoded(renewed) == "@d")
    let there = try next.identity(vouchedFor: .node(onBehalfOf: "alice", carrying: "@d"))
    #expect(there.permissions == renewed.permissions)
    #expect(try next.identity(vouchedFor: .node(onBehalfOf: "alice")).permissions.rules.isEmpty)
    let plain = try policy("alice publish new.%u.>")
    #expect(CarriedPermissions.encoded(try #require(plain.reconsider(identity))) == "")
  }

  @Test("a token's permissions may have them, too, and carry them bound")
  func tokens() throws {
    var policy = AccessPolicy()
    let secret = Array("a secret of at least 32 bytes, really".utf8)
    policy.tokenKeys = ["k": .secret(secret)]
    let token = NewToken(
      subject: "alice", keyID: "k", issued: 0, expires: 2_000_000,
      permissions: Permissions([.init(.publish, on: try TopicPattern("devices.%u.%c.>"))]))
    let text = try token.signed(with: .secret(secret))
    let identity = try policy.authenticate(
      .token(text), clientID: "d", peerName: nil, peerExpires: nil, now: 1_000_000)
    #expect(identity.permissions.rights(on: "devices.alice.d.x") == .publish)
    #expect(CarriedPermissions.encoded(identity) == "=\n1 devices.alice.d.>")
  }

  @Test("anonymous clients have the permissions of their name, and no others")
  func anonymous() throws {
    var policy = try policy(
      "* subscribe public.>\nguest subscribe news.>\nguest publish guests.%c.> users.%u.x")
    #expect(throws: WireError.self) {
      try policy.authenticate(.none, peerName: nil, peerExpires: nil, now: 0)
    }
    policy.anonymous = "guest"
    let guest = try policy.authenticate(.none, clientID: "g1", peerName: nil, peerExpires: nil, now: 0)
    #expect(guest.name.isEmpty && guest.proof == .none)
    #expect(guest.permissions.rights(on: "news.x") == .subscribe)
    #expect(guest.permissions.rights(on: "guests.g1.x") == .publish)
    #expect(guest.permissions.rights(on: "public.x").isEmpty)
    #expect(guest.permissions.rules.count == 2)
    // Wrong credentials are refused all the same.
    for credentials in [Credentials.password("x", user: "guest"), .token("x"), .password("", user: "")] {
      #expect(throws: WireError.self) {
        try policy.authenticate(credentials, peerName: nil, peerExpires: nil, now: 0)
      }
    }
    #expect(try rights(policy, "guest", on: "public.x") == .subscribe)
    #expect(CarriedPermissions.encoded(guest) == "@g1")
    let there = try policy.identity(vouchedFor: .node(onBehalfOf: "", carrying: "@g1"))
    #expect(there.permissions == guest.permissions)
    #expect(policy.reconsider(guest)?.permissions == guest.permissions)
    policy.anonymous = nil
    #expect(policy.reconsider(guest) == nil)
    #expect(policy.reconsider(there) == nil)
    #expect(throws: WireError.self) { try policy.identity(vouchedFor: .node(onBehalfOf: "")) }
  }

  @Test("the decision names the rule, and rules that come near")
  func decisions() throws {
    let file = try permissions(
      "* subscribe public.>\nalice subscribe orders.>\n\nalice publish,create orders.eu devices.%c.>\nbob all >"
    )
    func decision(_ right: Rights, _ topic: String, _ clientID: String = "", anonymous: Bool = false)
      -> PermissionDecision
    {
      PermissionDecision(
        right, on: topic, by: file, for: PermissionSubject(user: "alice", clientID: clientID),
        rulesOf: "alice", isAnonymous: anonymous)
    }
    #expect(decision(.publish, "orders.eu").deciding?.line == 4)
    #expect(decision(.subscribe, "orders.eu").deciding?.line == 2)
    #expect(decision(.subscribe, "public.x").deciding?.subject == nil)
    #expect(decision(.subscribe, "public.x").isAllowed)
    #expect(!decision(.subscribe, "public.x", anonymous: true).isAllowed)
    let denied = decision(.publish, "orders.us")
    #expect(!denied.isAllowed && denied.others.map(\.line) == [2] && denied.unbound.map(\.line) == [4])
    #expect(decision(.publish, "devices.d.x", "d").deciding?.line == 4)
    #expect(decision(.publish, "devices.d.x", "e").unbound.isEmpty)
    let inbox = decision(.publish, "_inbox.x")
    #expect(inbox.isAllowed && inbox.deciding == nil)
  }
}
