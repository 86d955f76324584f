import SluiceWire

// A session whose client keeps it small while nothing happens.
extension ClientSession {
  /// Whether it may be packed: it is open, and no answer is awaited.
  package var isQuiet: Bool {
    phase == .open
      && streams.allSatisfy {
        switch $0 {
        case .free: true
        case .subscription(let inbound): inbound.isOpen
        case .publication(let outbound): outbound.isOpen && !outbound.isCompleting
        case .request, .cancelling, .committing: false
        }
      }
  }

  /// Writes a quiet session.
  package func pack(into writer: inout PackedWriter) {
    assert(isQuiet, "answers are awaited")
    writer.flags(mayBeRedirected)
    writer.number(features)
    writer.number(lastToken)
    writer.number((keepalive.deadline ?? 0) / 1_000_000)
    numbers.pack(into: &writer)
    writer.number(streams.count)
    for stream in streams {
      switch stream {
      case .subscription(let inbound):
        writer.number(1)
        inbound.pack(into: &writer)
      case .publication(let outbound):
        writer.number(2)
        outbound.pack(into: &writer)
      case .free, .request, .cancelling, .committing: writer.number(0)
      }
    }
  }

  /// A session with the state of the packed one. The broker's silence counts from now.
  package init(unpacking reader: inout PackedReader, now: UInt64) {
    let mayBeRedirected = reader.flags()[0]
    self.init(features: reader.number())
    let lastToken: UInt64 = reader.number()
    let keepalive = Keepalive(milliseconds: reader.number(), now: now)
    let numbers = StreamNumbers(unpacking: &reader)
    let count = reader.number(Int.self)
    var streams: [Stream] = []
    streams.reserveCapacity(count)
    for _ in 0..<count {
      switch reader.number(UInt8.self) {
      case 1: streams.append(.subscription(Inbound(unpacking: &reader)))
      case 2: streams.append(.publication(Outbound(unpacking: &reader)))
      default: streams.append(.free)
      }
    }
    goOn(mayBeRedirected, lastToken, keepalive, numbers, streams)
  }
}

extension ClientSession.Inbound {
  fileprivate func pack(into writer: inout PackedWriter) {
    writer.credit(credit)
    writer.number(nextOffset)
    writer.flags(isLive, hasGaps, isPattern, isShared, commits)
  }

  fileprivate init(unpacking reader: inout PackedReader) {
    credit = reader.credit()
    nextOffset = reader.number()
    let flags = reader.flags()
    isOpen = true
    (isLive, hasGaps, isPattern, isShared, commits) = (flags[0], flags[1], flags[2], flags[3], flags[4])
  }
}

extension ClientSession.Outbound {
  fileprivate func pack(into writer: inout PackedWriter) {
    writer.credit(credit)
    writer.number(bytesGranted)
    writer.number(bytesSpent)
    writer.number(acknowledged)
    writer.number(firstSequence)
    writer.flags(isSource, isConnected != nil, isConnected ?? false)
  }

  fileprivate init(unpacking reader: inout PackedReader) {
    credit = reader.credit()
    bytesGranted = reader.number()
    bytesSpent = reader.number()
    acknowledged = reader.number()
    firstSequence = reader.number()
    let flags = reader.flags()
    isOpen = true
    isSource = flags[0]
    isConnected = flags[1] ? flags[2] : nil
  }
}

extension StreamNumbers {
  fileprivate func pack(into writer: inout PackedWriter) {
    writer.number(limit)
    writer.number(highest)
    writer.number(returned.count)
    for number in returned { writer.number(number) }
  }

  fileprivate init(unpacking reader: inout PackedReader) {
    self.init()
    limit = reader.number()
    highest = reader.number()
    for _ in 0..<reader.number(Int.self) { returned.append(reader.number()) }
  }
}

extension PackedWriter {
  /// Credit, in which 0 stands for no limit, and its use.
  fileprivate mutating func credit(_ credit: Credit) {
    number(credit.granted &+ 1)
    number(credit.spent)
  }
}

extension PackedReader {
  fileprivate mutating func credit() -> Credit {
    let granted = number(UInt64.self) &- 1
    return Credit(granted: granted, spent: number())
  }
}
