import SluiceWire
import TestSupport
import Testing

@testable import SluiceAccess

@Suite("Links that give a part of a user's permissions away")
struct SignedLinkTests {
  private static let secret = Array("a secret of at least 32 bytes, really".utf8)
  private var policy = AccessPolicy()

  init() throws {
    policy.users = ["alice": try .cheap("right"), "bob": try .cheap("right")]
    policy.permissions["alice"] = Permissions([
      .init([.publish, .subscribe, .create], on: try TopicPattern("a.>"))
    ])
    policy.permissions["bob"] = Permissions([.init(.subscribe, on: try TopicPattern("b.>"))])
    policy.tokenKeys = ["k": .secret(Self.secret)]
  }

  private func alice(_ policy: AccessPolicy? = nil) throws -> Identity {
    try (policy ?? self.policy).authenticate(
      .password("right", user: "alice"), clientID: "page", peerName: nil, peerExpires: nil, now: 0)
  }

  private func use(_ link: String, at now: Int64 = 0, _ policy: AccessPolicy? = nil) throws(WireError)
    -> Identity
  {
    try (policy ?? self.policy).authenticate(.token(link), peerName: nil, peerExpires: nil, now: now)
  }

  private func refusal(_ link: String, at now: Int64 = 0, _ policy: AccessPolicy? = nil) -> ErrorCode? {
    do {
      _ = try use(link, at: now, policy)
      return nil
    } catch {
      return error.code
    }
  }

  @Test("a link allows one operation on one topic, by its user's name")
  func holder() throws {
    let link = try policy.link(.read, on: "a.x", by: alice(), until: 1000)
    #expect(link.expires == 1000)
    let reader = try use(link.text)
    #expect(reader.name == "alice" && reader.permissions.rules.count == 1)
    #expect(reader.permissions.rights(on: "a.x") == .subscribe)
    #expect(reader.permissions.rights(on: "a.y").isEmpty)
    #expect(!reader.permissions.allow(.publish, on: "a.x"))
    let writer = try use(try policy.link(.publish, on: "a.x", by: alice(), until: 1000).text)
    #expect(writer.permissions.rights(on: "a.x") == [.publish, .create])
    #expect(CarriedPermissions.encoded(reader) == "=\n2 a.x")
  }

  @Test("only a user who may do it makes a link")
  func makers() throws {
    let bob = try policy.authenticate(
      .password("right", user: "bob"), peerName: nil, peerExpires: nil, now: 0)
    for (operation, topic) in [
      (LinkOperation.publish, "b.x"), (.read, "a.x"), (.read, "b"), (.read, "_inbox.x"),
    ] {
      #expect(throws: WireError.self, "\(topic)") {
        try policy.link(operation, on: topic, by: bob, until: 1)
      }
    }
    for topic in ["b.*", "b.>", ">", "", "b..x", "b x"] {
      #expect(throws: WireError.self, "\(topic)") { try policy.link(.read, on: topic, by: bob, until: 1) }
    }
    // A link doesn't make another, which would last longer.
    let holder = try use(try policy.link(.read, on: "b.x", by: bob, until: 10).text)
    #expect(throws: WireError.self) { try policy.link(.read, on: "b.x", by: holder, until: 100) }
    let node = try policy.identity(vouchedFor: .node(onBehalfOf: "bob"))
    #expect(throws: WireError.self) { try policy.link(.read, on: "b.x", by: node, until: 100) }
  }

  @Test("a link ends with its time, and other keys don't know it")
  func time() throws {
    let link = try policy.link(.read, on: "a.x", by: alice(), until: 1000).text
    #expect(refusal(link, at: 999) == nil)
    #expect(refusal(link, at: 1000) == .credentialsExpired)
    var other = policy
    other.linkKey = LinkKey(Array("another secret of at least 32 bytes".utf8))
    #expect(refusal(link, at: 0, other) == .authenticationFailed)
    other.linkKey = policy.linkKey
    #expect(refusal(link, at: 0, other) == nil)
  }

  @Test("no altered link is taken")
  func alterations() throws {
    let link = try policy.link(.read, on: "a.x", by: alice(), until: 1000).text
    var random = TestSupport.SeededRandom.printed()
    let letters = Array("ABCZabz019-_.".utf8)
    for place in link.utf8.indices {
      let offset = link.utf8.distance(from: link.utf8.startIndex, to: place)
      var bytes = Array(link.utf8)
      bytes[offset] = letters.filter { $0 != bytes[offset] }.randomElement(using: &random)!
      #expect(refusal(String(decoding: bytes, as: UTF8.self)) == .authenticationFailed, "\(offset)")
      bytes.remove(at: offset)
      #expect(refusal(String(decoding: bytes, as: UTF8.self)) == .authenticationFailed, "\(offset)")
    }
    for text in [
      "link1.", "link1..", "link1.AA.AA", "\(link).", link + "A", String(repeating: link, count: 40),
    ] {
      #expect(refusal(text) == .authenticationFailed)
    }
  }

  @Test("text of any bytes is read as a link or refused, and what is read is what was signed")
  func hostileText() throws {
    var random = TestSupport.SeededRandom.printed()
    let link = try policy.link(.publish, on: "a.x", by: alice(), until: 1000).text
    let content = try #require(
      Base64Text.url.decode(
        link.utf8.dropFirst(SignedLink.prefix.utf8.count).prefix { $0 != UInt8(ascii: ".") }))
    for round in 0..<20_000 {
      var bytes = round % 2 == 0 ? content : (0..<Int.random(in: 0...80, using: &random)).map { _ in 0 }
      for _ in 0...Int.random(in: 0...4, using: &random) where !bytes.isEmpty {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      let text = SignedLink.prefix + Base64Text.url.encode(bytes) + ".AA"
      guard let read = SignedLink(unverified: text) else { continue }
      #expect((try? TopicName.validate(read.topic)) != nil)
      let signed = read.signed(with: policy.linkKey)
      #expect(try SignedLink(signed, key: policy.linkKey, now: .min) == read)
    }
  }

  @Test("the user's permissions and password are those of the moment")
  func changes() throws {
    let link = try policy.link(.read, on: "a.x", by: alice(), until: 1000).text
    let holder = try use(link)
    var next = policy
    next.permissions["alice"] = Permissions([.init(.publish, on: try TopicPattern("a.>"))])
    #expect(try use(link, at: 0, next).permissions.rules.isEmpty)
    #expect(next.reconsider(holder)?.permissions.rules.isEmpty == true)
    next.permissions["alice"] = Permissions([.init(.all, on: try TopicPattern("a.x"))])
    #expect(next.reconsider(holder)?.permissions.rights(on: "a.x") == .subscribe)
    for change in [PasswordHash?.none, try .cheap("right")] {
      var next = policy
      next.users["alice"] = change
      #expect(refusal(link, at: 0, next) == .accessRevoked)
      #expect(next.reconsider(holder) == nil)
    }
  }

  @Test("links of tokens, certificates, and clients without credentials")
  func proofs() throws {
    let rights = Permissions([.init(.subscribe, on: try TopicPattern("t.%c.>"))])
    let token = try NewToken(subject: "shop", keyID: "k", issued: 0, expires: 60_000, permissions: rights)
      .signed(with: .secret(Self.secret))
    let shop = try policy.authenticate(.token(token), clientID: "c", peerName: nil, peerExpires: nil, now: 0)
    let link = try policy.link(.read, on: "t.c.x", by: shop, until: 1_000_000)
    #expect(link.expires == 60_000, "no longer than the token")
    let holder = try use(link.text)
    #expect(holder.permissions.rights(on: "t.c.x") == .subscribe && holder.expires == 60_000)
    var next = policy
    next.tokenKeys = ["k": .secret(Array("another secret of at least 32 bytes".utf8))]
    #expect(refusal(link.text, at: 0, next) == .accessRevoked)

    next = policy
    next.permissions["cert"] = Permissions([.init(.subscribe, on: try TopicPattern("c.%c"))])
    let certificate = try next.authenticate(
      .none, clientID: "d", peerName: "cert", peerExpires: 5000, now: 0)
    let second = try next.link(.read, on: "c.d", by: certificate, until: 1000).text
    #expect(try use(second, at: 0, next).permissions.rights(on: "c.d") == .subscribe)
    next.certificatesMustBeListed = true
    next.permissions["cert"] = nil
    #expect(refusal(second, at: 0, next) == .accessRevoked)

    next = policy
    next.anonymous = "guest"
    next.permissions["guest"] = Permissions([.init(.subscribe, on: try TopicPattern("g"))])
    let guest = try next.authenticate(.none, peerName: nil, peerExpires: nil, now: 0)
    let third = try next.link(.read, on: "g", by: guest, until: 1000).text
    #expect(try use(third, at: 0, next).permissions.rights(on: "g") == .subscribe)
    #expect(refusal(third) == .accessRevoked)
  }
}
