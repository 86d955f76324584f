import SluiceDoors
import SluiceIO
import TestSupport
import Testing

/// Groups, cursors and administration over HTTP.
@Suite struct HTTPGroupTests {
  private let door: DoorWorld

  init() throws {
    door = try DoorWorld([.http])
  }

  /// Sends a request on a connection of its own. Returns its status, its member field, and its body without chunk sizes.
  private func ask(_ line: String, _ body: String = "") -> (status: Int, member: String, body: String) {
    let client = begin(line, body)
    door.settle(.milliseconds(400))
    return read(client)
  }

  private func begin(_ line: String, _ body: String = "") -> ByteClient {
    let client = door.connect(1)
    client.send(
      "\(line) HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    return client
  }

  private func read(_ client: ByteClient) -> (status: Int, member: String, body: String) {
    let text = client.text
    let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
    let lines = parts[0].split(separator: "\r\n")
    let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    let member = lines.first { $0.hasPrefix("Sluice-Member: ") }?.dropFirst(15) ?? ""
    return (status, String(member), parts.count > 1 ? String(parts[1]) : "")
  }

  private func payloads(_ body: String) -> [String] {
    body.split(separator: "\n").compactMap { line -> String? in
      guard let mark = line.firstRange(of: "\"payload\":\"") else { return nil }
      let rest: Substring = line[mark.upperBound...]
      return String(rest.prefix { $0 != "\"" })
    }
  }

  private func publish(_ count: Int, to topic: String = "t") {
    _ = ask("POST /topics/\(topic)?lines", (0..<count).map { "m\($0)" }.joined(separator: "\n"))
  }

  @Test func aMemberGetsAndSettlesRecords() {
    publish(5)
    let first = ask("POST /topics/t/groups/g/next?count=2")
    #expect(first.status == 200)
    #expect(payloads(first.body) == ["m0", "m1"])
    #expect(first.body.hasPrefix("{\"offset\":0,\"delivery\":1,"))
    let second = ask("POST /topics/t/groups/g/next?count=10&member=\(first.member)")
    #expect(payloads(second.body) == ["m2", "m3", "m4"])
    #expect(ask("POST /topics/t/groups/g/ack?member=\(first.member)", "0\n2-3").body == "{\"records\":3}\n")
    #expect(ask("POST /topics/t/groups/g/retry?member=\(first.member)", "1").body == "{\"records\":1}\n")
    let again = ask("POST /topics/t/groups/g/next?count=10&member=\(first.member)")
    #expect(payloads(again.body) == ["m1"])
    #expect(again.body.contains("\"delivery\":2"))
    #expect(ask("POST /topics/t/groups/g/ack?member=\(first.member)").body == "{\"records\":2}\n")
    let empty = ask("POST /topics/t/groups/g/next?wait=100ms&member=\(first.member)")
    #expect(empty.status == 204)
  }

  @Test func aRequestWaitsForARecord() {
    publish(1)
    let first = ask("POST /topics/t/groups/g/next")
    let waiting = begin("POST /topics/t/groups/g/next?wait=60s&member=\(first.member)")
    door.settle(.seconds(5))
    #expect(waiting.text.isEmpty)
    publish(1)
    door.settle(.milliseconds(50))
    #expect(payloads(read(waiting).body) == ["m0"])
  }

  @Test func whatAMemberDoesNotSettleGoesToAnother() {
    publish(3)
    let first = ask("POST /topics/t/groups/g/next?count=3&deadline=5s")
    #expect(payloads(first.body).count == 3)
    #expect(ask("POST /topics/t/groups/g/next?deadline=5s").status == 204)
    // The deadline restarts for the record that the member still works on.
    door.settle(.seconds(3))
    #expect(ask("POST /topics/t/groups/g/extend?member=\(first.member)", "0").body == "{\"records\":1}\n")
    door.settle(.seconds(3))
    let other = ask("POST /topics/t/groups/g/next?count=3&deadline=5s")
    #expect(payloads(other.body) == ["m1", "m2"])
    // A member that leaves returns its records to the group.
    #expect(ask("POST /topics/t/groups/g/leave?member=\(other.member)").status == 200)
    #expect(ask("POST /topics/t/groups/g/ack?member=\(other.member)").status == 410)
    let third = ask("POST /topics/t/groups/g/next?count=3&deadline=5s")
    #expect(payloads(third.body) == ["m1", "m2"])
  }

  @Test func aClientThatIsGoneTakesNothingWithIt() {
    _ = ask("PUT /topics/t")
    let waiting = begin("POST /topics/t/groups/g/next?wait=60s")
    door.settle(.milliseconds(200))
    waiting.abort()
    door.settle(.milliseconds(200))
    publish(1)
    let other = ask("POST /topics/t/groups/g/next?wait=1s")
    #expect(payloads(other.body) == ["m0"])
  }

  @Test func refuseIsNoWordForAnything() {
    publish(1)
    let first = ask("POST /topics/t/groups/g/next?dead-letters=dead")
    let answer = ask("POST /topics/t/groups/g/refuse?member=\(first.member)")
    #expect(answer.status == 400)
    #expect(answer.body.contains("retry") && answer.body.contains("reject"))
    #expect(ask("POST /topics/t/groups/g/ack?member=\(first.member)").body == "{\"records\":1}\n")
  }

  @Test func aRetryWaitsForItsDelay() {
    publish(2)
    let first = ask("POST /topics/t/groups/g/next?retry-backoff=10s..1m")
    #expect(ask("POST /topics/t/groups/g/retry?member=\(first.member)&after=5s").status == 200)
    let second = ask("POST /topics/t/groups/g/next?member=\(first.member)")
    #expect(payloads(second.body) == ["m1"])
    // As the group's backoff says.
    #expect(ask("POST /topics/t/groups/g/retry?member=\(first.member)").status == 200)
    let waiting = begin("POST /topics/t/groups/g/next?retry-backoff=10s..1m&wait=60s")
    door.settle(.seconds(3))
    #expect(waiting.text.isEmpty)
    door.settle(.seconds(3))
    #expect(payloads(read(waiting).body) == ["m0"])
    let last = ask("POST /topics/t/groups/g/next?retry-backoff=10s..1m")
    #expect(last.status == 204)
    door.settle(.seconds(6))
    #expect(payloads(ask("POST /topics/t/groups/g/next?retry-backoff=10s..1m").body) == ["m1"])
    for wrong in ["retry-backoff=5m..1s", "retry-backoff=5s", "retry-backoff=0..1s", "retry-backoff=1s..60d"]
    {
      #expect(ask("POST /topics/t/groups/h/next?\(wrong)").status == 400)
    }
    #expect(ask("POST /topics/t/groups/g/ack?member=x&after=1s").status == 400)
  }

  @Test func rejectedRecordsGoToTheDeadLetters() {
    publish(1)
    let first = ask("POST /topics/t/groups/g/next?dead-letters=dead")
    #expect(ask("POST /topics/t/groups/g/reject?member=\(first.member)").body == "{\"records\":1}\n")
    #expect(payloads(ask("GET /topics/dead?until=live").body) == ["m0"])
  }

  @Test func membersBelongToTheirGroup() {
    publish(1)
    let first = ask("POST /topics/t/groups/g/next")
    #expect(ask("POST /topics/t/groups/h/ack?member=\(first.member)").status == 410)
    #expect(ask("POST /topics/t/groups/g/ack?member=nonsense").status == 410)
    #expect(ask("POST /topics/t/groups/g/ack").status == 400)
    #expect(ask("POST /topics/t/groups/g/ack?member=\(first.member)", "x-1").status == 400)
    #expect(ask("POST /topics/t/groups/g/next?deadline=1s").status == 409)
    #expect(ask("GET /topics/t/groups/g/next").status == 405)
    #expect(ask("POST /topics/t/groups/g/other").status == 404)
  }

  @Test func aCursorGoesOnBehindWhatWasWritten() {
    publish(6)
    #expect(payloads(ask("GET /topics/t?cursor=c&count=2").body) == ["m0", "m1"])
    #expect(payloads(ask("GET /topics/t?cursor=c&count=2&demand=1").body) == ["m2", "m3"])
    #expect(ask("POST /topics/t/cursors/c?from=offset:1").status == 204)
    #expect(payloads(ask("GET /topics/t?cursor=c&until=live").body) == ["m1", "m2", "m3", "m4", "m5"])
    #expect(ask("DELETE /topics/t/cursors/c").status == 204)
    #expect(ask("DELETE /topics/t/cursors/c").status == 404)
    #expect(payloads(ask("GET /topics/t?cursor=c&count=1").body) == ["m0"])
  }

  @Test func demandBoundsWhatIsUnderWay() throws {
    publish(2000)
    #expect(payloads(ask("GET /topics/t?until=live&demand=7").body).count == 2000)
    #expect(ask("GET /topics/t?demand=0").status == 400)
  }

  @Test func filtersSelectByKeyAndHeaders() {
    for (key, color) in [("a1", "red"), ("a2", "blue"), ("b", "red")] {
      let client = door.connect(1)
      client.send(
        "POST /topics/t HTTP/1.1\r\nHost: x\r\nSluice-Key: \(key)\r\nSluice-Header-Color: \(color)\r\nContent-Length: 2\r\n\r\n\(key.prefix(2).padding)"
      )
      door.settle()
    }
    func keys(_ query: String) -> Int { payloads(ask("GET /topics/t?until=live&\(query)").body).count }
    #expect(keys("key=a1") == 1)
    #expect(keys("key-prefix=a") == 2)
    #expect(keys("header=color:red") == 2)
    #expect(keys("header=color") == 3)
    #expect(keys("header=size") == 0)
    #expect(keys("header=color:red&key-prefix=a") == 1)
  }

  @Test func topicsAreAdministered() {
    let made = ask("PUT /topics/prices?replay-records=3&flow=lossless")
    #expect(made.status == 200)
    #expect(made.body.contains("\"topic\":\"prices\""))
    #expect(ask("PUT /topics/prices?flow=free").status == 409)
    #expect(ask("PUT /topics/prices?colour=red").status == 400)
    let changed = ask("PATCH /topics/prices?flow=free")
    #expect(changed.status == 200)
    #expect(ask("GET /topics/prices/settings").body.contains("\"replay-records\":\"3\""))
    publish(5, to: "other")
    #expect(ask("POST /topics/other/trim?from=2").body.contains("\"firstOffset\":2"))
    #expect(ask("POST /topics/other/trim?before=3").body.contains("\"firstOffset\":3"))
    #expect(ask("POST /topics/other/trim?keep-last=1").body.contains("\"firstOffset\":4"))
    #expect(ask("POST /topics/other/trim?newest=1").body.contains("\"firstOffset\":4"))
    #expect(ask("POST /topics/other/trim?before=4&keep-last=1").status == 400)
    #expect(ask("POST /topics/other/trim").status == 400)
    let list = ask("GET /topics?limit=1").body
    #expect(list.contains("\"topic\":\"other\"") && list.hasSuffix("\"more\":true}\n"), "\(list)")
    #expect(ask("GET /topics?after=other").body.hasSuffix("\"more\":false}\n"))
    #expect(ask("DELETE /topics/prices").status == 204)
    #expect(ask("GET /topics/prices/settings").status == 404)
  }
}

extension Substring {
  /// The text, filled up to two characters.
  fileprivate var padding: String { count < 2 ? self + "-" : String(self) }
}
