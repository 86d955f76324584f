extension JetStream {
  /// Stores one message.
  ///
  /// - Parameters:
  ///   - stream: the subject's stream, for error messages; the engine decides by the subject.
  ///   - message: the message. Its ``NATSMessage/reply`` isn't used.
  ///   - completion: called with the failure, or with the acknowledgement when the message is stored with the safety of the stream's replicas and the
  ///     engine's `sync_interval`.
  public func publish(
    _ message: NATSMessage, to stream: String, _ completion: @escaping Completion<PublishAcknowledgement>
  ) throws(NATSError) {
    try send([message], of: stream, completion)
  }

  /// Stores all messages or none, in order and with successive sequences.
  ///
  /// Several commits may be in flight: the engine processes them in the order of the calls. An expected last sequence is a header of the first message, and
  /// is compared when the last message has arrived.
  ///
  /// - Parameters:
  ///   - messages: from 1 to ``maximumBatch`` messages of one stream, which must allow atomic batches.
  ///   - stream: the subjects' stream, for error messages.
  ///   - completion: called with the acknowledgement or the failure. After ``NATSError/Code-swift.struct/outcomeUnknown``, the batch may have been stored as
  ///     a whole.
  public func commit(
    _ messages: [NATSMessage], to stream: String, _ completion: @escaping Completion<PublishAcknowledgement>
  ) throws(NATSError) {
    guard (1...Self.maximumBatch).contains(messages.count) else {
      throw NATSError(
        .batchRefused,
        "an atomic batch has from 1 to \(Self.maximumBatch) messages, and this one has \(messages.count)"
      ).of(stream: stream)
    }
    // A single message is atomic by itself.
    guard messages.count > 1 else { return try send(messages, of: stream, completion) }
    let id = client.makeBatchName()
    var batch = messages
    for index in batch.indices {
      batch[index].headers.setBatch(id, sequence: UInt64(index + 1), isLast: index == batch.count - 1)
    }
    try send(batch, of: stream, completion)
  }

  private func send(
    _ messages: [NATSMessage], of stream: String, _ completion: @escaping Completion<PublishAcknowledgement>
  ) throws(NATSError) {
    let client = client
    do throws(NATSError) {
      try client.requestBehind(messages[...], timeout: timeout) { result in
        completion(
          Self.unwrap(result, of: stream, isWrite: true) { message throws(NATSError) in
            try PublishAcknowledgement(message.payload, server: client.server)
          })
      }
    } catch {
      throw error.of(stream: stream)
    }
  }
}
