import SluiceIO
import SluiceSimulation
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// Requests topics to be shown, listed, created, trimmed, changed and deleted, and checks the replies.
final class Inquirer: StreamUser {
  private enum Question {
    case show(String)
    case list
    case create(String)
    case delete(String)
    case trim(String)
    case set(String, TopicSettings)
  }

  private unowned let peer: SimulatedPeer
  private var open: [(stream: UInt32, question: Question)] = []

  init(peer: SimulatedPeer) {
    self.peer = peer
  }

  var loop: SimulatedLoop { peer.loop }
  private var oracle: Oracle { peer.oracle }

  func show(_ topic: String) { ask(.show(topic), TopicShow(topic: topic)) }

  func list() { ask(.list, TopicList(after: "", limit: 100)) }

  func create(_ topic: String, _ settings: TopicSettings) {
    ask(.create(topic), TopicCreate(topic: topic, settings: settings))
  }

  func trim(_ topic: String, to count: UInt64) {
    guard peer.isOpen else { return }
    oracle.changedTopics.insert(topic)
    ask(.trim(topic), TopicTrim(topic: topic, .newest(count)))
  }

  func set(_ topic: String, _ settings: TopicSettings) {
    guard peer.isOpen else { return }
    oracle.changedTopics.insert(topic)
    ask(.set(topic, settings), TopicSet(topic: topic, settings: settings))
  }

  func delete(_ topic: String) {
    guard peer.isOpen else { return }
    oracle.deletedTopics.insert(topic)
    ask(.delete(topic), TopicDelete(topic: topic))
  }

  private func ask(_ question: Question, _ frame: some Frame) {
    guard peer.isOpen else { return }
    let stream = peer.takeStream(for: self)
    open.append((stream, question))
    peer.note("asks to \(question)")
    peer.send(frame, stream: stream)
  }

  func connected(_ connection: SimulatedPeer) {}

  func received(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, on stream: UInt32) throws(WireError)
    -> Bool
  {
    guard let index = open.firstIndex(where: { $0.stream == stream }) else {
      oracle.fail(peer.number, "\(header.type) answers nothing that was asked")
      return true
    }
    let question = open.remove(at: index).question
    switch (question, header.type) {
    case (.show(let topic), .topicInfo), (.create(let topic), .topicInfo), (.trim(let topic), .topicInfo):
      check(try TopicInfo(body: body), topic)
    case (.set(let topic, _), .topicInfo):
      // Another request may have changed the settings again by then.
      check(try TopicInfo(body: body), topic)
    case (.list, .topics): check(try Topics(body: body))
    case (.delete, .done): break
    case (_, .error): check(try Fault(body: body), question)
    default: oracle.fail(peer.number, "\(header.type) answers \(question)")
    }
    return true
  }

  private func check(_ info: TopicInfo, _ topic: String) {
    let summary = info.summary
    oracle.check(summary.topic == topic, peer.number, "\(summary.topic) was shown for \(topic)")
    oracle.check(summary.firstOffset <= summary.nextOffset, peer.number, "\(topic) begins behind its end")
    for subscription in info.subscriptions {
      oracle.check(
        subscription.sent <= subscription.granted, peer.number,
        "\(topic) shows a subscription that was sent \(subscription.sent) of \(subscription.granted)")
    }
    for publication in info.publications {
      oracle.check(
        publication.received <= publication.granted, peer.number,
        "\(topic) shows a publication with \(publication.received) of \(publication.granted)")
    }
  }

  private func check(_ page: Topics) {
    let names = page.topics.map { Array($0.topic.utf8) }
    for (before, after) in zip(names, names.dropFirst()) {
      oracle.check(before.lexicographicallyPrecedes(after), peer.number, "topics are listed out of order")
    }
  }

  private func check(_ fault: Fault, _ question: Question) {
    switch (question, fault.code) {
    case (.show, .unknownTopic), (.delete, .unknownTopic), (.trim, .unknownTopic), (.set, .unknownTopic),
      (.create, .topicExists):
      break
    case (_, .shuttingDown) where oracle.brokerIsStopping: break
    default: oracle.fail(peer.number, "\(question) is answered with \(fault.code): \(fault.message)")
    }
  }

  func disconnected(inOrder: Bool) { open = [] }

  func settle() {}

  var unsettled: String? { open.first.map { "no answer to \($0.question)" } }
}
