import SluiceNATS

/// The contents of one replica of a stream.
public struct StreamContents {
  public struct Message: Hashable, Sendable {
    public let sequence: UInt64
    public let message: ModelMessage
    /// The wall clock of the storing server, in nanoseconds since 1970.
    public let time: Int64
    /// When it expires, by the same clock; nil for never.
    public let expiry: Int64?
    /// Stored, because each replica needs them.
    let size: Int
    let rollUp: String?
    let identifier: String?

    init(sequence: UInt64, message: ModelMessage, time: Int64, expiry: Int64?) {
      self.sequence = sequence
      self.message = message
      self.time = time
      self.expiry = expiry
      size = message.subject.utf8.count + message.payload.count + message.block.count + 22
      rollUp = message["Nats-Rollup"]
      identifier = message["Nats-Msg-Id"]
    }

    public var subject: String { message.subject }
    public var payload: [UInt8] { message.payload }
  }

  /// A change that all replicas apply in the same order.
  enum Operation {
    case store([Message])
    case purge(pattern: String?, before: UInt64?)
    /// Deletes an expired message, and stores its marker if there is one.
    case expire(UInt64, marker: Message?)
    case configure(StreamConfiguration)
  }

  private(set) var configuration: StreamConfiguration
  public private(set) var lastSequence: UInt64 = 0
  private(set) var bytes = 0
  private var messages: [UInt64: Message] = [:]
  /// The sequences of `messages`, ascending: of all, and by subject.
  private(set) var sequences: [UInt64] = []
  private var bySubject: [String: [UInt64]] = [:]
  /// The expiry times of messages that expire.
  private var expiring: [UInt64: Int64] = [:]
  private var identifiers: [String: (sequence: UInt64, time: Int64)] = [:]

  init(_ configuration: StreamConfiguration) {
    self.configuration = configuration
  }

  public var count: Int { sequences.count }

  public var firstSequence: UInt64 { sequences.first ?? (lastSequence == 0 ? 0 : lastSequence + 1) }

  public subscript(sequence: UInt64) -> Message? { messages[sequence] }

  /// All messages, in order.
  public var all: [Message] { sequences.compactMap { messages[$0] } }

  /// All messages from `sequence` on, in order.
  func all(from sequence: UInt64) -> [Message] {
    sequences[index(of: sequence)...].compactMap { messages[$0] }
  }

  public func last(of subject: String) -> Message? {
    bySubject[subject]?.last.flatMap { messages[$0] }
  }

  /// The last sequence among the matching subjects; 0 if there is none.
  func lastSequence(matching pattern: String) -> UInt64 {
    if let sequences = bySubject[pattern] { return sequences.last ?? 0 }
    return bySubject.reduce(0) { last, entry in
      NATSSubject.matches(entry.key, pattern) ? max(last, entry.value.last ?? 0) : last
    }
  }

  /// Messages from `sequence` on with matching subjects, in order.
  func matching(_ pattern: String, from sequence: UInt64) -> [Message] {
    // For one subject the others needn't be checked.
    if let own = bySubject[pattern] { return own.compactMap { $0 < sequence ? nil : messages[$0] } }
    var found: [Message] = []
    for sequence in sequences[index(of: sequence)...] {
      if let message = messages[sequence], NATSSubject.matches(message.subject, pattern) {
        found.append(message)
      }
    }
    return found
  }

  /// The last message of each subject that matches one of the patterns, up to `end`, in order.
  func lastMessages(matching patterns: [String], upTo end: UInt64) -> [Message] {
    var found: [Message] = []
    for (subject, sequences) in bySubject
    where patterns.contains(where: { NATSSubject.matches(subject, $0) }) {
      if let last = sequences.last(where: { $0 <= end }), let message = messages[last] {
        found.append(message)
      }
    }
    return found.sorted { $0.sequence < $1.sequence }
  }

  /// The sequence of a message stored with this ID within the window; nil if there is none.
  func duplicate(of identifier: String, at time: Int64) -> UInt64? {
    guard let known = identifiers[identifier] else { return nil }
    return time - known.time <= configuration.duplicateWindow ?? 120_000_000_000 ? known.sequence : nil
  }

  /// The message that expires first, at or before `time`.
  func expired(at time: Int64) -> Message? {
    let first = expiring.min { ($0.value, $0.key) < ($1.value, $1.key) }
    return first.flatMap { $0.value <= time ? messages[$0.key] : nil }
  }

  var hasExpiring: Bool { !expiring.isEmpty }

  // MARK: Changes

  mutating func apply(_ operation: Operation) {
    switch operation {
    case .store(let messages): for message in messages { store(message) }
    case .purge(let pattern, let end):
      let doomed = sequences.filter { sequence in
        sequence < end ?? .max
          && pattern.map { NATSSubject.matches(messages[sequence]!.subject, $0) } ?? true
      }
      for sequence in doomed { remove(sequence) }
      // Sequences that don't exist yet are skipped.
      if pattern == nil, let end { lastSequence = max(lastSequence, end - 1) }
    case .expire(let sequence, let marker):
      remove(sequence)
      if let marker { store(marker) }
    case .configure(let configuration):
      self.configuration = configuration
      trim()
    }
  }

  /// The number of messages that a purge would delete.
  func purgeCount(pattern: String?, before end: UInt64?) -> Int {
    sequences.count { sequence in
      sequence < end ?? .max && pattern.map { NATSSubject.matches(messages[sequence]!.subject, $0) } ?? true
    }
  }

  private mutating func store(_ message: Message) {
    switch message.rollUp {
    case "sub": for sequence in bySubject[message.subject] ?? [] { remove(sequence) }
    case "all": for sequence in sequences { remove(sequence) }
    default: break
    }
    messages[message.sequence] = message
    sequences.append(message.sequence)
    bySubject[message.subject, default: []].append(message.sequence)
    bytes += message.size
    lastSequence = message.sequence
    if let expiry = message.expiry { expiring[message.sequence] = expiry }
    if let identifier = message.identifier {
      identifiers[identifier] = (message.sequence, message.time)
    }
    trim(message.subject)
  }

  private mutating func trim() {
    for subject in bySubject.keys.sorted() { trim(subject) }
  }

  private mutating func trim(_ subject: String) {
    let limit = configuration.maximumPerSubject
    if limit > 0 {
      while let own = bySubject[subject], own.count > limit { remove(own[0]) }
    }
    guard configuration.maximumBytes > 0, configuration.discard == .old else { return }
    while bytes > configuration.maximumBytes, let first = sequences.first { remove(first) }
  }

  private mutating func remove(_ sequence: UInt64) {
    guard let message = messages.removeValue(forKey: sequence) else { return }
    bytes -= message.size
    expiring[sequence] = nil
    let position = index(of: sequence)
    sequences.remove(at: position)
    bySubject[message.subject]?.removeAll { $0 == sequence }
    if bySubject[message.subject]?.isEmpty == true { bySubject[message.subject] = nil }
  }

  /// The index of the first sequence that isn't smaller.
  private func index(of sequence: UInt64) -> Int {
    var (low, high) = (0, sequences.count)
    while low < high {
      let middle = (low + high) / 2
      if sequences[middle] < sequence { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
