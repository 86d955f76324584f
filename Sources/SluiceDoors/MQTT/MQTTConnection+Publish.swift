import SluiceMQTT
import SluiceSession
import SluiceWire

// Publishes the client's messages, its retained messages and its will.
extension MQTTConnection {
  /// The compact topic of all retained messages: one record for each, whose key is the topic's name.
  static let retainedTopic = "mqtt.retained"

  /// The topic's settings on a single node: as durable as the broker, whatever the defaults for topics are.
  static func retainedSettings(isDurable: Bool) -> TopicSettings {
    var settings = TopicSettings()
    settings.compact = true
    settings.storage = .memory
    guard isDurable else { return settings }
    (settings.storage, settings.sync) = (.durable, .always)
    (settings.replayRecords, settings.replayBytes) = (mostRetained, mostRetainedBytes)
    settings.replayAge = TopicSettings.unlimited
    return settings
  }

  /// The most retained messages in a store, and their bytes; beyond them the oldest are dropped.
  private static let mostRetained: UInt64 = 1_000_000
  private static let mostRetainedBytes: UInt64 = 256 << 20

  /// The header of a record that lets a client recognize its own messages.
  static let publisherHeader = MQTTRecordHeaders.publisher

  // Called by actions of the session.

  func openPublication(_ number: UInt16, _ topic: String) {
    // A second publication with the same producer ID would end the first, whose messages may not be in the log.
    if areClosing, let publishing, let former = publishing.closing(topic) {
      former.reopen(as: number)
      return publishing.set(number, former)
    }
    let publication = MQTTPublication(.topic(number), topic: topic)
    madePublishing().set(number, publication)
    open(publication)
  }

  /// Returns the client's publishing state, and creates it if necessary.
  func madePublishing() -> MQTTPublishing {
    if let publishing { return publishing }
    let made = MQTTPublishing()
    publishing = made
    return made
  }

  func closePublication(_ number: UInt16) {
    publishing?.remove(number)?.isClosing = true
    areClosing = true
  }

  func publish(_ message: MQTTPublish, _ number: UInt16, _ sequence: UInt64?) {
    guard let publication = publishing?.publication(number) else { return }
    var token = MQTTToken(packetID: message.packetID)
    if let sequence, let progress, progress.producer != 0 {
      token.exact = sequence
      // The topic's next sequence shows whether the message is in the log: see ``MQTTPublication/opened(next:)``. If the publication is already open, the
      // remaining positions belong to messages in the log.
      if let former = progress.formerExact[sequence], former.topic == publication.topic {
        token.sentAt = former.sequence
        if publication.isOpen { return later.append(.done([token])) }
      }
    }
    guard marksOwn, let mark else { return append(message, token, to: publication) }
    var properties = MQTTProperties(message.properties)
    properties.append(user: Self.publisherHeader, mark)
    properties.withView { view in
      var marked = message
      marked.properties = view
      append(marked, token, to: publication)
    }
  }

  func retain(_ message: MQTTPublish, _ topic: String) {
    let token = token(ofCopy: message.packetID)
    let publishing = madePublishing()
    let publication: MQTTPublication
    if let retaining = publishing.retaining {
      publication = retaining
    } else {
      publication = MQTTPublication(.retained, topic: Self.retainedTopic)
      publishing.retaining = publication
      open(publication)
    }
    append(message, key: topic, token, to: publication)
  }

  private func append(
    _ message: MQTTPublish, key: String? = nil, _ token: MQTTToken, to publication: MQTTPublication
  ) {
    // The publication has ended. The session learns this from a queued action, and opens another publication for the next message.
    guard publication.stream != nil || publication.isMoving else {
      // The broker stops: the message isn't answered, so the client sends it again on its next connection.
      guard opensStreams else { return }
      if publication.role == .retained { return later.append(.copied([token.packetID])) }
      return later.append(
        .failed([token], MQTTError(.implementationSpecific, "the topic isn't published to")))
    }
    let before = publication.pendingBytes
    guard publication.append(message, key: key, token) else {
      if publication.role == .retained { return later.append(.copied([token.packetID])) }
      return later.append(
        .failed([token], MQTTError(.implementationSpecific, "the message has more properties than a record")))
    }
    pendingBytes += publication.pendingBytes - before
  }

  func open(_ publication: MQTTPublication) {
    guard opensStreams, let stream = native.openPublication() else {
      later.append(.publicationEnded(publication))
      return
    }
    publication.stream = stream
    madePublishing().byStream[stream] = publication
    if part != nil, publication.resending == nil { publication.resending = MQTTResending() }
    publication.awaitsAll = hub.isDurable
    let isRetained = publication.role == .retained
    let settings = isRetained ? hub.retainedSettings : TopicSettings()
    let ownProducer: UInt64 =
      switch publication.role {
      case .topic: progress?.producer ?? 0
      case .will: hold?.claim?.producer ?? 0
      case .retained: 0
      }
    link.send(
      PublishOpen(
        topic: publication.topic, acknowledgement: isRetained && hub.isDurable ? .durable : .received,
        producer: ownProducer, settings: settings),
      stream: stream)
  }

  /// Publishes the client's will after its session has ended.
  func publishWill() {
    guard let will = will.take() else { return }
    if isCutOff { return hub.publish(will, of: self) }
    guard let topic = try? MQTTTopicName.brokerName(will.topic) else { return }
    madeLeaving().sentWill = will
    will.withMessage { message in
      if will.isRetained { retain(message, topic) }
      let publication = MQTTPublication(.will, topic: topic)
      open(publication)
      // With a producer ID the log contains the will once, even if several processes publish it.
      append(message, MQTTToken(sentAt: hold?.claim.map { _ in 0 }), to: publication)
    }
  }

  // MARK: What the broker says

  func publicationOpened(_ stream: UInt32, next: UInt64) {
    guard let publication = publishing?.byStream[stream] else { return }
    let before = publication.pendingBytes
    settleFormer(publication, next: next)
    let done = publication.opened(next: next)
    pendingBytes -= before - publication.pendingBytes
    later.append(.done(done))
    runLater()
  }

  /// Compares the positions of messages from earlier connections with the topic's next sequence. Positions at or after it belong to messages that aren't in
  /// the log; they are removed, and later messages may use them.
  private func settleFormer(_ publication: MQTTPublication, next: UInt64) {
    guard case .topic = publication.role, let progress, !progress.formerExact.isEmpty else { return }
    var isChanged = false
    for (message, place) in progress.formerExact
    where place.topic == publication.topic && place.sequence >= next {
      progress.formerExact[message] = nil
      isChanged = true
    }
    // Sends no message before this change is stored.
    if isChanged { publication.barrier = keeping?.want() }
  }

  func acknowledged(_ stream: UInt32, _ ack: Ack) {
    guard let publication = publishing?.publication(onStream: stream) else { return }
    // A single message is the common case, and avoids a list and the queue.
    if later.isEmpty, publication.role != .retained,
      let token = publication.onlyAcknowledged(through: ack.through)
    {
      hasNews = true
      return answer(token, nil)
    }
    let done = publication.acknowledged(through: ack.through)
    if !waitingRequests.isEmpty { hasNews = true }
    if done.isEmpty { return }
    hasNews = true
    later.append(publication.role == .retained ? .copied(done.map(\.packetID)) : .done(done))
    runLater()
  }

  /// Returns whether the stream was a publication.
  func publicationEnded(_ stream: UInt32, _ error: MQTTError) -> Bool {
    guard let publishing, let publication = publishing.byStream.removeValue(forKey: stream) else {
      return false
    }
    pendingBytes -= publication.pendingBytes
    let lost = publication.ended()
    later.append(publication.role == .retained ? .copied(lost.map(\.packetID)) : .failed(lost, error))
    later.append(.publicationEnded(publication))
    if publication.role == .retained { publishing.retaining = nil }
    if case .topic(let number) = publication.role, publishing.publications[number] === publication {
      _ = publishing.remove(number)
    }
    runLater()
    return true
  }

  /// Sends what a publication is granted.
  private func send(_ publication: MQTTPublication) {
    let before = publication.pendingBytes
    let longest = Int(maximumFrame) - PublishHeader.size
    for (sequence, place) in publication.send(by: &native, to: link, longest: longest, kept: keeping?.kept) {
      progress?.exact[sequence] = place
    }
    pendingBytes -= before - publication.pendingBytes
  }

  /// Sends what is granted, and ends publications that are no longer used.
  func sendPublications() {
    // Usually all waiting messages are of one topic.
    if !areClosing, let last = publishing?.last?.publication, last.pendingBytes == pendingBytes {
      return send(last)
    }
    areClosing = false
    guard let publishing else { return }
    for publication in publishing.byStream.values {
      if !publication.tokens.isEmpty { send(publication) }
      guard publication.isClosing else { continue }
      guard publication.isOpen, publication.isSettled, let stream = publication.stream, native.cancel(stream)
      else {
        areClosing = true
        continue
      }
      publishing.byStream[stream] = nil
      link.send(Cancel(), stream: stream)
    }
  }
}
