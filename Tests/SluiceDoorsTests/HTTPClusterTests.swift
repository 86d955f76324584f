import SluiceDoors
import SluiceWire
import Testing

/// HTTP clients at the nodes of a cluster.
@Suite struct HTTPClusterTests {
  private let nodes: DoorNodes

  init() throws {
    nodes = try DoorNodes()
  }

  /// Sends a request to the node with that number until it is served, since a topic may be moving to its next owner.
  private func ask(_ index: Int, _ line: String, _ body: String = "", _ fields: String...) -> HTTPStage.Answer
  {
    var answer = HTTPStage.Answer(text: "")
    for _ in 0..<100 {
      let client = nodes.connect(DoorNodes.http + index)
      let head = (["\(line) HTTP/1.1", "Host: b", "Connection: close"] + fields).joined(separator: "\r\n")
      client.send("\(head)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
      for _ in 0..<20 where !client.hasEnded { nodes.settle(.milliseconds(100)) }
      answer.text = client.text
      if answer.status != 503, client.hasEnded { break }
    }
    return answer
  }

  private func ids(_ answer: HTTPStage.Answer) -> [String] {
    answer.body.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("id: ") }.map {
      String($0.dropFirst(4))
    }
  }

  /// The topic's next owner continues its epoch. So the client resumes after its last event at any node, and gets no notice of a new epoch. A topic that is
  /// created again has a new epoch.
  @Test func eventsGoOnBehindTheLastOneWhenTheOwnerDies() throws {
    for text in ["a", "b"] { #expect(ask(0, "POST /topics/t", text).status == 200) }
    let events = "Accept: text/event-stream"
    let first = ids(ask(1, "GET /topics/t?from=earliest&until=live", "", events))
    #expect(first.count == 2)
    let last = try #require(first.first)
    let owner = try #require(nodes.owner(of: "t"))
    nodes.node(owner)?.kill()
    #expect(nodes.settled())
    let others = (0..<3).filter { $0 != owner }
    #expect(ask(others[0], "POST /topics/t", "c").status == 200)
    for node in others {
      let answer = ask(node, "GET /topics/t?until=live", "", events, "Last-Event-ID: \(last)")
      #expect(answer.status == 200 && !answer.body.contains("restarted"), "\(answer)")
      #expect(ids(answer).map { $0.split(separator: "-").last } == ["1", "2"], "\(answer)")
    }
    #expect(ask(others[1], "DELETE /topics/t").status == 204)
    for text in ["A", "B", "C"] { #expect(ask(others[0], "POST /topics/t", text).status == 200) }
    for node in others {
      let answer = ask(node, "GET /topics/t?until=live", "", events, "Last-Event-ID: \(last)")
      #expect(answer.body.contains("event: restarted"), "\(answer)")
      #expect(ids(answer).map { $0.split(separator: "-").last } == ["0", "1", "2"], "\(answer)")
    }
  }

  /// The end of a topic belongs to one epoch. That holds at nodes that don't serve the topic too, and at its next owner.
  @Test func theEndOfALifeIsKnownAtAllNodes() throws {
    let owner = try #require(nodes.owner(of: "t"))
    let others = (0..<3).filter { $0 != owner }
    let native = try NativeClient(nodes, at: DoorNodes.native + owner)
    native.publish("t", ["a", "b"], stream: 1)
    native.send(Complete(.finished), stream: 1)
    native.settle(.seconds(2))
    let events = "Accept: text/event-stream"
    let end = try #require(ids(ask(others[0], "GET /topics/t?from=earliest", "", events)).last)
    #expect(end.hasSuffix("-end"))
    for node in 0..<3 {
      #expect(ask(node, "GET /topics/t", "", events, "Last-Event-ID: \(end)").status == 204, "node \(node)")
    }
    nodes.node(owner)?.kill()
    #expect(nodes.settled())
    for node in others {
      #expect(ask(node, "GET /topics/t", "", events, "Last-Event-ID: \(end)").status == 204, "node \(node)")
    }
    #expect(ask(others[0], "DELETE /topics/t").status == 204)
    for text in ["A", "B", "C"] { #expect(ask(others[0], "POST /topics/t", text).status == 200) }
    for node in others {
      let answer = ask(node, "GET /topics/t?until=live", "", events, "Last-Event-ID: \(end)")
      #expect(answer.status == 200 && answer.body.contains("event: restarted"), "\(answer)")
      #expect(ids(answer).map { $0.split(separator: "-").last } == ["0", "1", "2"], "\(answer)")
    }
  }
}
