import SluiceMQTT
import SluiceSession
import SluiceWire

// Messages of the client, its retained ones and its will: publications of the broker.
extension MQTTConnection {
  /// The topic that has the retained messages of all others: a record for each, whose key is the topic's name, in a compact topic.
  static let retainedTopic = "mqtt.retained"

  /// Its settings on one node: as durable as the broker is, whatever its topics are by default.
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

  /// Retained messages that a store keeps, and their bytes: beyond that the oldest are dropped.
  private static let mostRetained: UInt64 = 1_000_000
  private static let mostRetainedBytes: UInt64 = 256 << 20

  /// The header of a record that tells a client its own messages from others.
  static let publisherHeader = MQTTRecordHeaders.publisher

  // Called by actions of the session.

  func openPublication(_ number: UInt16, _ topic: String) {
    // A second one with the same producer would end the first, whose messages may not be in the log.
    if areClosing, let publishing, let former = publishing.closing(topic) {
      former.reopen(as: number)
      return publishing.set(number, former)
    }
    let publication = MQTTPublication(.topic(number), topic: topic)
    madePublishing().set(number, publication)
    open(publication)
  }

  /// What there is of a client that publishes, which this one is about to do.
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
      // By the topic's next sequence the publication tells whether it is in the log: see ``MQTTPublication/opened(next:)``. Of a publication that is
      // open, the places that are left are of messages in the log.
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
    // The publication has ended: its end tells the session, which opens another for the next message.
    guard publication.stream != nil || publication.isMoving else {
      // The broker stops: the client is told nothing of the message, and sends it again by its next connection.
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

  /// Publishes the client's will, which has ended.
  func publishWill() {
    guard let will = will.take() else { return }
    if isCutOff { return hub.publish(will, of: self) }
    guard let topic = try? MQTTTopicName.brokerName(will.topic) else { return }
    madeLeaving().sentWill = will
    will.withMessage { message in
      if will.isRetained { retain(message, topic) }
      let publication = MQTTPublication(.will, topic: topic)
      open(publication)
      // It is in the log once, whichever process publishes it.
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

  /// What earlier connections have sent to the topic is in the log or isn't, and is told apart by its place now: later messages get the places of
  /// those that aren't.
  private func settleFormer(_ publication: MQTTPublication, next: UInt64) {
    guard case .topic = publication.role, let progress, !progress.formerExact.isEmpty else { return }
    var isChanged = false
    for (message, place) in progress.formerExact
    where place.topic == publication.topic && place.sequence >= next {
      progress.formerExact[message] = nil
      isChanged = true
    }
    // Nothing is sent before that is kept.
    if isChanged { publication.barrier = keeping?.want() }
  }

  func acknowledged(_ stream: UInt32, _ ack: Ack) {
    guard let publication = publishing?.publication(onStream: stream) else { return }
    // One message at a time takes neither a list nor the queue of what comes later.
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

  /// Sends what is granted of a publication.
  private func send(_ publication: MQTTPublication) {
    let before = publication.pendingBytes
    let longest = Int(maximumFrame) - PublishHeader.size
    for (sequence, place) in publication.send(by: &native, to: link, longest: longest, kept: keeping?.kept) {
      progress?.exact[sequence] = place
    }
    pendingBytes -= before - publication.pendingBytes
  }

  /// Sends what is granted, and ends publications that aren't used any more.
  func sendPublications() {
    // Mostly all that waits is of one topic.
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
