import SluiceClient
import TestSupport

/// Publishes numbered records, as many as it is allowed, a few at a time; keeps account of what was acknowledged.
final class CrashProducer: Sendable {
  private struct State {
    var subject: TopicSubject?
    /// Of the subject: what earlier ones are told doesn't count.
    var life = 0
    var next: UInt64 = 0
    /// The sequence behind the last that was ever given to a subject.
    var sent: UInt64 = 0
    var allowed: UInt64 = 0
    var underWay = 0
    var isPumping = false
    var acknowledged: UInt64 = 0
    var arrivals = ClusterArrivals()
    /// The last one whose offset was told.
    var receipt: (sequence: UInt64, offset: UInt64)?
    var failure: String?
  }

  static let window = 16

  let topic: String
  let id: UInt64
  let acknowledgement: TopicSubject.Acknowledgement
  private let state = Shared(State())
  /// Told of each acknowledgement, with the sequence behind it, on the client's loop.
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

  /// Publishes on that client from now on, beginning at a number that isn't behind what was acknowledged, as a program does that was started again.
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

  /// Its program ends.
  func stop() {
    state.update { state in
      state.life += 1
      state.subject = nil
    }
  }

  /// Measures gaps between acknowledgements from now on.
  func restart() {
    state.update { $0.arrivals.restart() }
  }

  /// Lets it publish so many more.
  func allow(_ count: UInt64) {
    state.update { $0.allowed = max($0.allowed, $0.next) + count }
    pump()
  }

  /// What is behind the last one that was acknowledged, and given to a subject.
  var acknowledged: UInt64 { state.value.acknowledged }
  var sent: UInt64 { state.value.sent }
  var receipt: (sequence: UInt64, offset: UInt64)? { state.value.receipt }
  /// Acknowledgements.
  var arrivals: ClusterArrivals { state.value.arrivals }
  var isIdle: Bool {
    state.update { $0.acknowledged >= $0.allowed && $0.next >= $0.allowed && $0.underWay == 0 }
  }
  var failure: String? { state.value.failure }
  /// Where it has come to, for messages.
  var account: String {
    let state = state.value
    return "next \(state.next), sent \(state.sent), allowed \(state.allowed), under way \(state.underWay)"
  }

  /// One thread at a time hands over, so that the subject's numbers are the records' own.
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
