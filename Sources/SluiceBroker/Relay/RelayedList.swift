import SluiceSession
import SluiceWire

/// A page of the topics of all nodes, in byte order of their names, merged from a page of each node. Belongs to its connection's loop.
final class RelayedList: ServerStream {
  /// The most topics of a page. A topic takes at most 1,333 bytes.
  static let largestPage = 40

  private let stream: UInt32
  private let after: String
  private let limit: Int
  private unowned let streams: StreamMultiplexer
  private var parts: [RelayedListPart] = []
  private var pages: [Topics] = []
  private var isOver = false

  init(_ stream: UInt32, after: String, limit: UInt32, on streams: StreamMultiplexer) {
    self.stream = stream
    self.after = after
    self.limit = min(Int(limit), Self.largestPage)
    self.streams = streams
  }

  /// Requests pages from the other nodes, and adds this node's page.
  func begin(over links: [NodeLink]) {
    let (page, more) = streams.client.listTopics(after: after, limit: limit)
    pages = [Topics(topics: page, more: more)]
    parts = links.map { RelayedListPart(of: self, over: $0) }
    for part in parts { part.begin(TopicList(after: after, limit: UInt32(limit))) }
    finish()
  }

  var kind: StreamKind { .request }
  func reconsider() throws(WireError) {}
  func isDrained(isPatient: Bool) -> Bool { true }

  func release() {
    isOver = true
    for part in parts { part.leaveOwner() }
    parts = []
  }

  func received(_ page: Topics) {
    pages.append(page)
    finish()
  }

  func failed(_ fault: Fault) {
    if !isOver { streams.refuse(stream, fault) }
  }

  private func finish() {
    guard !isOver, pages.count > parts.count else { return }
    streams.answer(streams.session.request(on: stream), Self.merged(pages, after: after, limit: limit))
  }

  /// Returns the first topics of several pages which all begin after the same name. A topic that moves may be in two of them.
  static func merged(_ pages: [Topics], after: String, limit: Int) -> Topics {
    let all = pages.flatMap(\.topics).sorted { NameSpan.precedes($0.topic, $1.topic) }
    // More topics may follow the last name of a page that isn't the last one, so the merged page must end there.
    let bound = pages.filter(\.more).map { $0.topics.last?.topic ?? after }.min(by: NameSpan.precedes)
    var page: [TopicSummary] = []
    var isCut = bound != nil
    for topic in all where page.last.map({ NameSpan.precedes($0.topic, topic.topic) }) ?? true {
      if page.count == limit || bound.map({ NameSpan.precedes($0, topic.topic) }) ?? false {
        isCut = true
        break
      }
      page.append(topic)
    }
    return Topics(topics: page, more: isCut)
  }
}

/// The page of one other node.
final class RelayedListPart: LinkedStream {
  /// Empty, since it isn't about a single topic.
  let topic = ""
  private weak var list: RelayedList?
  private let link: NodeLink
  private var number: UInt32?

  init(of list: RelayedList, over link: NodeLink) {
    self.list = list
    self.link = link
  }

  func begin(_ frame: TopicList) {
    number = link.open(self)
    if let number {
      link.send(frame, stream: number)
    } else {
      list?.failed(.lostNode(link.node, serving: "", because: "its limit on streams is reached"))
    }
  }

  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    switch type {
    case .topics:
      let page = try unsafe Topics(body: body)
      number = nil
      list?.received(page)
    case .error: lost(try unsafe Fault(relayed: body))
    default: throw WireError(.unexpectedFrame, "\(type) doesn't answer TOPIC_LIST")
    }
    return true
  }

  func leaveOwner() {
    if let number = number.take() { link.cancel(number) }
  }

  func lost(_ fault: Fault) {
    number = nil
    list?.failed(fault)
  }
}
