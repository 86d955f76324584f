import SluiceBroker
import SluiceWire
import Testing

@testable import SluiceDoors

/// HTTP clients for which the broker has no connection left. They get a response that says so, and cost little until then.
@Suite struct HTTPRefusalTests {
  /// A broker whose limit is one client, which is connected.
  private static func full() throws -> HTTPStage {
    let stage = try HTTPStage { $0.limits.connectionsPerAddress = 1 }
    #expect(stage.begin("GET /topics/t/requests").text.hasPrefix("HTTP/1.1 200"))
    return stage
  }

  private static let request = "GET /topics HTTP/1.1\r\nHost: b\r\n\r\n"

  @Test func aSlowClientIsToldToo() throws {
    let stage = try Self.full()
    let slow = stage.door.connect(1)
    stage.door.settle(.seconds(5))
    #expect(!slow.hasEnded && slow.received.isEmpty)
    slow.send(Self.request + Self.request)
    stage.door.settle()
    #expect(slow.hasEnded && slow.text.hasPrefix("HTTP/1.1 429"))
    #expect(slow.text.contains("Connection: close\r\n") && slow.text.hasSuffix("}\n"), "\(slow.text)")
    #expect(slow.text.ranges(of: "HTTP/1.1").count == 1)
    #expect(stage.door.waitingHTTPRefusals == 0)
  }

  /// The response doesn't wait for the body.
  @Test func aPublisherIsToldBeforeItHasSentItsBody() throws {
    let stage = try Self.full()
    let client = stage.door.connect(1)
    client.send("POST /topics/t HTTP/1.1\r\nHost: b\r\nContent-Length: 1000000\r\n\r\n")
    stage.door.settle()
    #expect(client.hasEnded && client.text.hasPrefix("HTTP/1.1 429") && client.text.hasSuffix("}\n"))
  }

  /// A browser first asks which requests its page may send. The gateway answers.
  @Test(arguments: [false, true]) func aPreflightIsAnswered(isLast: Bool) throws {
    let stage = try Self.full()
    let client = stage.door.connect(1)
    client.send("OPTIONS /topics HTTP/1.1\r\nHost: b\r\n\(isLast ? "Connection: close\r\n" : "")\r\n")
    stage.door.settle()
    #expect(client.text.hasPrefix("HTTP/1.1 204") && client.hasEnded == isLast, "\(client.text)")
    client.send(Self.request)
    stage.door.settle()
    #expect(client.hasEnded && client.text.contains("HTTP/1.1 429") == !isLast, "\(client.text)")
    #expect(stage.door.waitingHTTPRefusals == 0)
  }

  @Test func whatIsNoRequestIsToldSo() throws {
    let stage = try Self.full()
    let client = stage.door.connect(1)
    client.send("hello\r\n\r\n")
    stage.door.settle()
    #expect(client.hasEnded && client.text.hasPrefix("HTTP/1.1 400"), "\(client.text)")
  }

  /// The method isn't known yet, so the response must be right for any method.
  @Test(arguments: ["", "H", "HEAD"]) func aClientThatSendsNoRequestIsDroppedInTime(text: String) throws {
    let stage = try Self.full()
    let silent = stage.door.connect(1)
    silent.send(text)
    stage.door.settle(.seconds(9))
    #expect(!silent.hasEnded)
    stage.door.settle(.seconds(2))
    #expect(silent.hasEnded && silent.text.hasPrefix("HTTP/1.1 429"))
    #expect(silent.text.hasSuffix("\r\n\r\n") && !silent.text.contains("Content-Length"), "\(silent.text)")
    #expect(stage.door.waitingHTTPRefusals == 0)
  }

  @Test func aClientThatLeavesIsForgotten() throws {
    let stage = try Self.full()
    let clients = (0..<2).map { _ in stage.door.connect(1) }
    stage.door.settle()
    #expect(stage.door.waitingHTTPRefusals == 2)
    clients[0].close()
    clients[1].abort()
    stage.door.settle(.seconds(1))
    #expect(stage.door.waitingHTTPRefusals == 0)
  }

  /// Above the limit, clients are answered at once.
  @Test func aFloodOfRefusedConnectionsIsBounded() throws {
    let stage = try Self.full()
    let flood = (0..<HTTPRefusal.limit + 20).map { _ in stage.door.connect(1) }
    stage.door.settle()
    #expect(stage.door.waitingHTTPRefusals == HTTPRefusal.limit)
    #expect(flood.count(where: \.hasEnded) == 20)
    for client in flood where client.hasEnded {
      #expect(client.text.hasPrefix("HTTP/1.1 429") && client.text.hasSuffix("\r\n\r\n"))
    }
    for client in flood where !client.hasEnded { client.send(Self.request) }
    stage.door.settle()
    #expect(flood.allSatisfy { $0.hasEnded && $0.text.hasPrefix("HTTP/1.1 429") })
    #expect(stage.door.waitingHTTPRefusals == 0)
  }
}
