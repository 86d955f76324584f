import SluiceIO

/// A node's lease of one shard, as a value: the node takes it, holds it, hands it over, or loses it.
///
/// ```text
/// none ──taken──▶ held ──given up──▶ closing ──closed──▶ releasing ──given, or free──▶ none
///                   └─────────── lost: another node owns it, or the session has ended ────────────▶ none
/// ```
struct ShardLeaseState: Hashable, Sendable {
  enum Phase: Hashable, Sendable {
    case none
    case held(term: UInt64)
    /// The broker flushes and closes the shard.
    case closing(term: UInt64)
    /// It is closed; the others must be informed.
    case releasing(term: UInt64)
  }

  enum Change: Hashable, Sendable {
    case gained(term: UInt64)
    case closing(term: UInt64, successor: String?)
    case lost(term: UInt64)
    case released
  }

  private(set) var phase = Phase.none
  /// The broker has opened the shard.
  private(set) var isOpen = false

  /// The term under which the node owns the shard; nil if it doesn't.
  var term: UInt64? {
    switch phase {
    case .none: nil
    case .held(let term), .closing(let term), .releasing(let term): term
    }
  }

  var isHeld: Bool {
    if case .held = phase { return true }
    return false
  }

  /// Whether the broker has closed it.
  var isReleasing: Bool {
    if case .releasing = phase { return true }
    return false
  }

  /// Handles a new last message on the shard's subject.
  ///
  /// - Parameters:
  ///   - record: nil if there is no message.
  ///   - writer: this process.
  ///   - session: the node's session; nil outside of one.
  mutating func observed(_ record: ShardRecord?, writer: UInt64, session: UInt64?) -> [Change] {
    let isOwn = record.map { $0.writer == writer && $0.session == session } ?? false
    guard let record, isOwn else {
      // It is closed here; according to the record it was handed over to another node.
      guard case .releasing(let term) = phase, let record, record.term > term else { return lose() }
      phase = .none
      return [.released]
    }
    switch (phase, record.state) {
    case (.none, .held):
      phase = .held(term: record.term)
      isOpen = false
      return [.gained(term: record.term)]
    case (.held(let term), .moving) where term == record.term:
      phase = .closing(term: term)
      return [.closing(term: term, successor: record.successor)]
    case (.releasing, .free):
      phase = .none
      return [.released]
    default: return []
    }
  }

  mutating func opened(_ term: UInt64) -> Bool {
    guard self.term == term, !isOpen else { return false }
    isOpen = true
    return true
  }

  /// Notes that the broker has closed the shard.
  mutating func closed(_ term: UInt64) {
    switch phase {
    case .held(term), .closing(term): phase = .releasing(term: term)
    default: break
    }
  }

  /// Ends the lease: the session has ended, or another node owns the shard.
  mutating func lose() -> [Change] {
    guard let term else { return [] }
    phase = .none
    return [.lost(term: term)]
  }
}
