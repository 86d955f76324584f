import SluiceAccess
import SluiceWire
import Testing

@Suite("Permissions")
struct PermissionsTests {
  private func permissions(_ rules: (Rights, String)...) throws -> Permissions {
    Permissions(try rules.map { Permissions.Rule($0.0, on: try TopicPattern($0.1)) })
  }

  @Test("what no rule allows is denied")
  func denied() throws {
    #expect(Permissions.nothing.rights(on: "a").isEmpty)
    #expect(!Permissions.nothing.allow(.subscribe, on: "a"))
    #expect(!Permissions.nothing.reveal("a"))
    #expect(Permissions.everything.allow(.all, on: "a"))
    let some = try permissions((.subscribe, "orders.*"), (.publish, "orders.eu"), (.admin, "other.>"))
    #expect(some.rights(on: "orders.eu") == [.subscribe, .publish])
    #expect(some.rights(on: "orders.us") == .subscribe)
    #expect(some.rights(on: "orders").isEmpty)
    #expect(!some.allow([.subscribe, .create], on: "orders.eu"))
    #expect(some.allow([.subscribe, .publish], on: "orders.eu"))
    #expect(some.reveal("other.a.b"))
    #expect(!some.reveal("others"))
  }

  @Test("a pattern is reached where there could be a topic of it with the right")
  func reach() throws {
    let some = try permissions((.subscribe, "orders.*"), ([.publish, .create], "log.>"))
    for pattern in ["orders.eu", "orders.>", "*.*", ">", "*.eu"] {
      #expect(some.reach(.subscribe, in: try TopicPattern(pattern)), "\(pattern)")
    }
    for pattern in ["orders", "orders.eu.x", "*", "log.a", "log.>", "_inbox.>", "*.*.*"] {
      #expect(!some.reach(.subscribe, in: try TopicPattern(pattern)), "\(pattern)")
    }
    #expect(!Permissions.nothing.reach(.subscribe, in: try TopicPattern(">")))
    #expect(Permissions.everything.reach(.subscribe, in: try TopicPattern("_inbox.x")))
    #expect(try !permissions((.subscribe, ">")).reach(.subscribe, in: TopicPattern("_inbox.>")))
    #expect(try permissions((.subscribe, "_inbox.>")).reach(.subscribe, in: TopicPattern("_inbox.x")))
  }

  @Test("a first wildcard doesn't stand for private names, and an inbox is for whoever knows its name")
  func inboxes() throws {
    let reader = try permissions((.subscribe, ">"))
    #expect(!reader.reveal("_inbox.a"))
    #expect(!reader.allow(.subscribe, on: "_inbox.a"))
    #expect(reader.allow(.publish, on: "_inbox.a"))
    let writer = try permissions((.publish, "orders"))
    #expect(writer.allow([.subscribe, .create], on: "_inbox.a"))
    #expect(!writer.allow(.publish, on: "_inbox.a"))
    #expect(!writer.allow(.admin, on: "_inbox.a"))
    #expect(!Permissions.nothing.allow(.publish, on: "_inbox.a"))
    #expect(try permissions((.subscribe, "_inbox.>")).reveal("_inbox.a"))
    #expect(!reader.reveal("$internal"))
  }

  @Test("whoever lists what may be known of looks at no names but those that rules lead to")
  func spans() throws {
    #expect(Permissions.everything.spans == [.all])
    #expect(Permissions.nothing.spans == [])
    let some = try permissions((.subscribe, "b.*.x"), (.publish, "a"), (.admin, "b.c.>"), (.create, "b"))
    #expect(
      some.spans == [
        NameSpan(first: "a", end: "a\0"), NameSpan(first: "b", end: "b\0"),
        NameSpan(first: "b.", end: "b/"),
      ])
    #expect(try permissions((.subscribe, "a.>"), (.publish, "*.x")).spans == [.all])
  }
}
