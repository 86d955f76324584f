import SluiceClient
import TestSupport

/// Publishes numbered records, a few at a time, up to the allowed number, and records their acknowledgements.
final class CrashProducer: Sendable {
  private struct State {
    var subject: TopicSubject?
    /// The number of the present subject; callbacks of earlier ones are ignored.
    var life = 0
    var next: UInt64 = 0
    /// The sequence after the last one passed to any subject.
    var sent: UInt64 = 0
    var allowed: UInt64 = 0
    var underWay = 0
    var isPumping = false
    var acknowledged: UInt64 = 0
    var arrivals = ClusterArrivals()
    /// The last sequence with a reported offset.
    var receipt: (sequence: UInt64, offset: UInt64)?
    var failure: String?
  }

  static let window = 16

  let topic: String
  let id: UInt64
  let acknowledgement: TopicSubject.Acknowledgement
  private let state = Shared(State())
  /// Called on the client's loop for each acknowledgement, with the next sequence.
  private let onAcknowledgement: @Sendable (UInt64) -> Void

  init(
    _ topic: String, id: UInt64, acknowledgement: TopicSubject.Acknowledgement,
    onAcknowledgement: @escaping @Sendable (UInt64) -> Void = { _ in }
  ) {
    self.topic = topic
    self.id = id
    self.acknowledgement = acknowledgement
    self.onAcknowledgement = onAcknowledgement
  }

  /// Starts publishing with that client, from a sequence that isn't beyond the acknowledged ones, as a restarted program does.
  func start(on client: Client, from sequence: UInt64) {
    let subject = client.subject(
      topic, acknowledgement: acknowledgement, producer: .init(id: id, firstSequence: sequence))
    state.update { state in
      state.life += 1
      state.subject = subject
      state.next = sequence
      state.underWay = 0
      state.allowed = max(state.allowed, state.sent)
    }
    pump()
  }

  /// Stops, as if its program had ended.
  func stop() {
    state.update { state in
      state.life += 1
      state.subject = nil
    }
  }

  /// Starts measuring gaps between acknowledgements.
  func restart() {
    state.update { $0.arrivals.restart() }
  }

  /// Allows `count` more records.
  func allow(_ count: UInt64) {
    state.update { $0.allowed = max($0.allowed, $0.next) + count }
    pump()
  }

  /// The sequences after the last acknowledged record, and after the last one passed to a subject.
  var acknowledged: UInt64 { state.value.acknowledged }
  var sent: UInt64 { state.value.sent }
  var receipt: (sequence: UInt64, offset: UInt64)? { state.value.receipt }
  /// The arrivals of acknowledgements.
  var arrivals: ClusterArrivals { state.value.arrivals }
  var isIdle: Bool {
    state.update { $0.acknowledged >= $0.allowed && $0.next >= $0.allowed && $0.underWay == 0 }
  }
  var failure: String? { state.value.failure }
  /// The state, for failure messages.
  var account: String {
    let state = state.value
    return "next \(state.next), sent \(state.sent), allowed \(state.allowed), under way \(state.underWay)"
  }

  /// One thread at a time passes records on, so that the subject's sequences equal the records' own.
  private func pump() {
    let mayPump = state.update { state in
      if state.isPumping { return false }
      state.isPumping = true
      return true
    }
    guard mayPump else { return }
    while let (subject, life, sequence) = take() {
      let record = CrashRecord(producer: id, sequence: sequence)
      subject.publish(Message(record.payload)) { [self] in answered(sequence, life, $0) }
    }
  }

  private func take() -> (TopicSubject, Int, UInt64)? {
    state.update { state in
      guard let subject = state.subject, state.underWay < Self.window, state.next < state.allowed else {
        state.isPumping = false
        return nil
      }
      defer {
        state.next += 1
        state.underWay += 1
        state.sent = max(state.sent, state.next)
      }
      return (subject, state.life, state.next)
    }
  }

  private func answered(_ sequence: UInt64, _ life: Int, _ result: Result<TopicSubject.Receipt, ClientError>)
  {
    let isNews = state.update { state in
      guard state.life == life else { return false }
      state.underWay -= 1
      switch result {
      case .success(let receipt):
        if receipt.sequence != sequence {
          state.failure = "producer \(id): record \(sequence) was acknowledged as \(receipt.sequence)"
        }
        state.acknowledged = max(state.acknowledged, sequence + 1)
        state.arrivals.arrive(sequence)
        if let offset = receipt.offset { state.receipt = (sequence, offset) }
      case .failure(let error): state.failure = "producer \(id) of \(topic) has failed: \(error)"
      }
      return state.failure == nil
    }
    guard isNews else { return }
    onAcknowledgement(sequence + 1)
    pump()
  }
}
