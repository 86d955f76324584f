import SluiceIO
import SluiceNATS

/// Requests to the engine for one shard's stream. Used on the client's loop.
///
/// A completion is never called from within the call, even if the client refuses the request.
struct ShardStream {
  typealias Completion<Value> = JetStream.Completion<Value>

  let api: JetStream
  let names: EngineNames
  private let reads: StreamReads

  init(_ api: JetStream, _ names: EngineNames, _ reads: StreamReads) {
    self.api = api
    self.names = names
    self.reads = reads
  }

  var loop: any EventLoop { api.client.loop }

  /// Stores messages, all or none.
  func commit(_ messages: [NATSMessage], _ done: @escaping Completion<PublishAcknowledgement>) {
    request(done) { () throws(NATSError) in try api.commit(messages, to: names.stream, done) }
  }

  /// Stores a fence message, which expects the stream's last sequence. Passes its own sequence to the completion.
  ///
  /// - Parameter timeout: how long the engine may take; nil for as long as for a commit.
  func write(
    _ fence: EngineFence, expecting last: UInt64, within timeout: Duration? = nil,
    _ done: @escaping Completion<UInt64>
  ) {
    var api = api
    if let timeout { api.timeout = min(timeout, api.timeout) }
    var message = NATSMessage(subject: names.fence, payload: fence.message())
    message.headers.expectLastSequence(last)
    request(done) { () throws(NATSError) in
      try api.publish(message, to: names.stream) { done($0.map(\.sequence)) }
    }
  }

  /// Reads messages in the order of their sequences, from any replica.
  ///
  /// - Parameters:
  ///   - subjects: a pattern of subjects.
  ///   - sequence: the sequence at which to begin.
  ///   - count: the most messages.
  ///   - maximumBytes: the most bytes of messages.
  ///   - each: gets a message.
  ///   - done: called after the last one.
  func read(
    _ subjects: String, from sequence: UInt64, count: Int, maximumBytes: Int,
    each: @escaping (StoredMessageView) -> Void, _ done: @escaping Completion<ReadPage>
  ) {
    request(done) { () throws(NATSError) in
      try reads.messages(
        api, of: names.stream, matching: subjects, from: sequence, count: count, maximumBytes: maximumBytes,
        each: each, done)
    }
  }

  /// Removes the messages of a subject before a sequence. Passes their number to the completion.
  func purge(_ subjects: String, before sequence: UInt64, _ done: @escaping Completion<UInt64>) {
    request(done) { () throws(NATSError) in
      try api.purge(names.stream, matching: subjects, before: sequence, done)
    }
  }

  /// Passes the stream's size in bytes to the completion.
  func size(_ done: @escaping Completion<UInt64>) {
    request(done) { () throws(NATSError) in
      try api.streamInfo(names.stream) { done($0.map(\.state.bytes)) }
    }
  }

  private func request<Value>(_ done: @escaping Completion<Value>, _ send: () throws(NATSError) -> Void) {
    do throws(NATSError) {
      try send()
    } catch {
      let unsent = error
      loop.soon { done(.failure(unsent)) }
    }
  }
}

extension EventLoop {
  /// Runs `job` in a later turn. On the loop only.
  func soon(_ job: @escaping () -> Void) { _ = schedule(after: .zero, job) }
}
