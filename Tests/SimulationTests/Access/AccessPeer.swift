import SluiceAccess
import SluiceIO
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// One connection of an identity, which checks every frame it receives against the permissions.
final class AccessPeer {
  enum Use: Equatable {
    case reading(String)
    case writing(String)
    case pattern(String)
    case group(String, deadLetters: String)
    case asking(String)
    case listing
    case renewing(Int64?)

    var topic: String? {
      switch self {
      case .reading(let topic), .writing(let topic), .group(let topic, _), .asking(let topic): topic
      case .pattern, .listing, .renewing: nil
      }
    }
  }

  private struct Stream {
    var use: Use
    /// Nil if any right is enough.
    var needs: Rights?
    var isOpen = true
    /// For a pattern: the topics by their numbers, and the topic that the following frames concern.
    var names: [UInt32: String] = [:]
    var subject: UInt32 = 0
    var records: [String: Int] = [:]
  }

  let name: String
  private let client: ScriptedClient
  private unowned let story: AccessStory
  private(set) var expires: Int64?
  private(set) var wasRevoked = false
  private(set) var isOver = false
  private(set) var isWelcome = false
  private var streams: [UInt32: Stream] = [:]
  private var last: UInt32 = 0
  private var inspected = 0

  init(_ name: String, _ client: ScriptedClient, expires: Int64?, in story: AccessStory) {
    self.name = name
    self.client = client
    self.expires = expires
    self.story = story
    inspect()
  }

  // MARK: Out

  func open(_ use: Use, _ needs: Rights?, _ frame: some Frame) {
    last += 1
    streams[last] = Stream(use: use, needs: needs)
    client.send(frame, stream: last)
  }

  func renew(_ credentials: Credentials, expires: Int64?) {
    if streams.values.contains(where: { if case .renewing = $0.use { $0.isOpen } else { false } }) { return }
    open(.renewing(expires), [], Authenticate(credentials))
  }

  func cancelOne(_ random: inout SeededRandom) {
    let open = streams.keys.filter { streams[$0]?.isOpen == true }.sorted()
    guard !open.isEmpty else { return }
    let stream = open[random.next(in: 0...open.count - 1)]
    if case .renewing? = streams[stream]?.use { return }
    client.send(Cancel(), stream: stream)
  }

  func forgetRecords() {
    for stream in streams.keys { streams[stream]?.records = [:] }
  }

  // MARK: In

  /// Checks the frames received since the last call.
  func inspect() {
    let new = client.frames[inspected...]
    inspected = client.frames.count
    for frame in new {
      do {
        try take(frame)
      } catch {
        story.check(false, "\(name): \(frame) can't be read: \(error)")
      }
    }
    if client.hasEnded { isOver = true }
  }

  private func take(_ frame: ScriptedClient.Received) throws {
    let number = frame.header.stream
    let recent = story.recentPermissions(of: name)
    guard number != 0 else { return try takeLast(frame, recent) }
    story.check(recent.contains { $0 != nil }, "\(name) has no rights, and gets \(frame)")
    guard let stream = streams[number] else { return story.check(false, "\(name): \(frame) for nothing") }
    switch frame.header.type {
    case .error: try takeFault(frame.decoded(Fault.self), number, stream, recent)
    case .subscribed, .publishOpened, .ack, .demand, .live, .lag, .deliveries, .done, .cursors:
      mustBeAllowed(stream, recent, frame)
      if [.done, .cursors].contains(frame.header.type) { streams[number]?.isOpen = false }
    case .deliver:
      mustBeAllowed(stream, recent, frame)
      try takeRecords(frame, number, stream, recent)
    case .selectTopic: streams[number]?.subject = try frame.decoded(SelectTopic.self).number
    case .matched:
      let frame = try frame.decoded(Matched.self)
      streams[number]?.names[frame.number] = frame.topic
      story.tell(.matched)
      mustBeReadable(frame.topic, recent)
    case .unmatched:
      streams[number]?.names[try frame.decoded(Unmatched.self).number] = nil
      story.tell(.unmatched)
    case .topics:
      for topic in try frame.decoded(Topics.self).topics {
        story.tell(.listed)
        story.check(recent.contains { $0?.reveal(topic.topic) == true }, "\(name) is told of \(topic.topic)")
      }
      streams[number]?.isOpen = false
    case .topicInfo:
      mustBeAllowed(stream, recent, frame)
      let info = try frame.decoded(TopicInfo.self)
      let isAdmin = recent.contains { $0?.rights(on: info.summary.topic).contains(.admin) == true }
      let clients = info.subscriptions.map(\.connection) + info.publications.map(\.connection)
      story.check(
        isAdmin || clients.allSatisfy { story.isConnection($0, of: name) }, "\(name) is told of others")
      streams[number]?.isOpen = false
    case .authenticated:
      story.tell(.renewed)
      if case .renewing(let expires) = stream.use { self.expires = expires }
      streams[number]?.isOpen = false
    case .cancelled, .complete: streams[number]?.isOpen = false
    default: story.check(false, "\(name): \(frame)")
    }
  }

  /// Handles the frames of stream 0.
  private func takeLast(_ frame: ScriptedClient.Received, _ recent: [Permissions?]) throws {
    guard frame.header.type == .error else {
      if frame.header.type == .welcome { isWelcome = true }
      return story.check([.welcome, .ping].contains(frame.header.type), "\(name): \(frame)")
    }
    let fault = try frame.decoded(Fault.self)
    isOver = true
    switch fault.code {
    case .accessRevoked, .authenticationFailed:
      wasRevoked = true
      story.tell(.revoked)
      story.check(recent.contains { $0 == nil }, "\(name) is revoked: \(fault.message)")
    case .credentialsExpired:
      story.tell(.expired)
      story.check(expires.map { story.wallClock >= $0 } == true, "\(name)'s credentials are over too early")
    default: story.check(false, "\(name): \(fault.code): \(fault.message)")
    }
    mustNotTell(fault, asked: nil, recent)
  }

  private func takeFault(_ fault: Fault, _ number: UInt32, _ stream: Stream, _ recent: [Permissions?]) throws
  {
    streams[number]?.isOpen = false
    mustNotTell(fault, asked: stream.use, recent)
    if fault.code == .permissionDenied {
      story.tell(.denied)
      story.check(
        recent.contains { !isAllowed(stream, $0) }, "\(name) may do \(stream.use), and is denied it")
    } else {
      // No client learns of a topic by a different error.
      story.check(recent.contains { isAllowed(stream, $0) }, "\(name): \(fault.code) for \(stream.use)")
    }
    if fault.code == .permissionDenied, client.frames(on: number).count > 1 { story.tell(.ended) }
  }

  private func takeRecords(
    _ frame: ScriptedClient.Received, _ number: UInt32, _ stream: Stream, _ recent: [Permissions?]
  ) throws {
    let topic: String
    if case .pattern = stream.use {
      guard let name = stream.names[stream.subject] else {
        return story.check(false, "\(name): records of nothing")
      }
      topic = name
    } else {
      topic = stream.use.topic ?? ""
    }
    mustBeReadable(topic, recent)
    try frame.body.withUnsafeBytes { body in
      let (_, batch) = try DeliverHeader.decode(body)
      var iterator = BatchIterator(batch, time: 0)
      while let record = try iterator.next() {
        // A dead letter of another client's group, published by the broker.
        if record.isAttributed { continue }
        story.tell(.delivered)
        streams[number]?.records[topic, default: 0] += 1
        let payload = String(decoding: record.body, as: UTF8.self)
        story.check(payload == topic, "\(name) gets a record of \(payload) as one of \(topic)")
      }
    }
  }

  // MARK: What may be

  private func isAllowed(_ stream: Stream, _ permissions: Permissions?) -> Bool {
    guard let permissions else { return false }
    guard let topic = stream.use.topic else { return true }
    if case .group(_, let deadLetters) = stream.use, !permissions.allow(.publish, on: deadLetters) {
      return false
    }
    guard let needs = stream.needs else { return permissions.reveal(topic) }
    return permissions.allow(needs, on: topic)
  }

  private func mustBeAllowed(_ stream: Stream, _ recent: [Permissions?], _ frame: ScriptedClient.Received) {
    story.check(
      recent.contains { isAllowed(stream, $0) }, "\(name) may not do \(stream.use), and gets \(frame)")
  }

  private func mustBeReadable(_ topic: String, _ recent: [Permissions?]) {
    story.check(
      recent.contains { $0?.rights(on: topic).contains(.subscribe) == true },
      "\(name) gets something of \(topic)")
  }

  /// An error message names a topic only if the client named it or may see it.
  private func mustNotTell(_ fault: Fault, asked: Use?, _ recent: [Permissions?]) {
    for topic in AccessStory.topicNames where fault.message.contains(topic) {
      if asked?.topic == topic { continue }
      if case .group(_, topic)? = asked { continue }
      story.check(
        recent.contains { $0?.reveal(topic) == true }, "\(name) is told of \(topic): \(fault.message)")
    }
  }

  /// Checks the end state. Call it after a quiet period in which one record was published to each topic since ``forgetRecords()``.
  func checkEnd(_ topics: [String]) {
    guard let permissions = story.permissions(of: name) else {
      return story.check(false, "\(name) is still there")
    }
    for (number, stream) in streams.sorted(by: { $0.key < $1.key }) where stream.isOpen {
      story.check(isAllowed(stream, permissions), "\(name) still has stream \(number), \(stream.use)")
      switch stream.use {
      case .reading(let topic):
        story.check(stream.records == [topic: 1], "\(name) gets \(stream.records) of \(topic)")
      case .pattern(let text):
        guard let pattern = try? TopicPattern(text) else { continue }
        let mine = topics.filter { pattern.selects($0) && permissions.rights(on: $0).contains(.subscribe) }
        story.check(
          Set(stream.names.values) == Set(mine), "\(name) has \(stream.names) of \(text), not \(mine)")
        story.check(
          stream.records == Dictionary(uniqueKeysWithValues: mine.map { ($0, 1) }),
          "\(name) gets \(stream.records) of \(text), where \(mine) are allowed")
      case .writing, .group: break
      case .asking, .listing, .renewing: story.check(false, "\(name) isn't answered \(stream.use)")
      }
    }
  }
}
