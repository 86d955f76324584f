import SluiceWire

extension ErrorCode {
  /// Whether a stream that the broker has ended with this code may be opened again later, according to the protocol.
  var isPassing: Bool {
    switch self {
    case .topicMoved, .storageFull, .storageFailed, .limitReached, .shuttingDown: true
    default: false
    }
  }

  /// Whether a publication that the broker has ended with this code waits, without any of its records being refused.
  var holdsPublications: Bool { self == .topicMoved || self == .storageFull || self == .storageFailed }
}
