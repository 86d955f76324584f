import SluiceWire

extension ErrorCode {
  /// Whether a stream that the broker has ended with this may be opened again later, as the protocol says of these codes.
  var isPassing: Bool {
    switch self {
    case .topicMoved, .storageFull, .storageFailed, .limitReached, .shuttingDown: true
    default: false
    }
  }

  /// Whether a publication that the broker has ended with this waits, and nothing of it is refused.
  var holdsPublications: Bool { self == .topicMoved || self == .storageFull || self == .storageFailed }
}
