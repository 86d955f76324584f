/// A receiver's treatment of a frame, decided by its header alone.
///
/// This is how the protocol grows: see ``FrameHeader/admission(at:)``.
public enum FrameAdmission: Hashable, Sendable {
  /// The body is to be read.
  case take
  /// The frame is passed over as if it had not come, whatever its stream and its body. It still counts as a heartbeat.
  case skip
}

/// An end of a connection.
public enum Side: Hashable, Sendable {
  case broker
  case client

  /// Whether the first frame that this side receives may be of this type.
  func opens(with type: FrameType) -> Bool {
    switch self {
    case .broker: type == .hello
    case .client: type == .welcome || type == .error
    }
  }
}

extension FrameHeader {
  /// The treatment of this frame by `side` when it receives it.
  ///
  /// | frame | treatment |
  /// |---|---|
  /// | of an unknown type from `0x80` on | skipped, whatever its flags and stream |
  /// | of an unknown type below `0x80` | ``ErrorCode/unsupportedFrame`` |
  /// | with one of the low four flag bits set | ``ErrorCode/unsupportedFrame`` |
  /// | that only the other side receives | ``ErrorCode/unexpectedFrame`` |
  /// | on stream 0 and about a stream, or the reverse | ``ErrorCode/invalidStream`` |
  /// | else | taken |
  ///
  /// The high four flag bits and the reserved field are ignored. Every error is one of the connection. Before the handshake is over
  /// the first frame goes to ``ServerHandshake`` instead: what doesn't speak the protocol at all deserves a better answer.
  public func admission(at side: Side) throws(WireError) -> FrameAdmission {
    guard let rule = Rule(type) else {
      if type.isIgnorable { return .skip }
      throw WireError(.unsupportedFrame, "\(type) isn't known to this version of the protocol")
    }
    guard flags & 0x0F == 0 else {
      throw WireError(
        .unsupportedFrame,
        "\(type) has flags 0x\(String(flags, radix: 16)), of which the low four bits must be understood and aren't"
      )
    }
    guard rule.receiver == nil || rule.receiver == side else {
      throw WireError(.unexpectedFrame, "\(type) isn't for a \(side) to receive")
    }
    switch rule.stream {
    case .zero where stream != 0:
      throw WireError(.invalidStream, "\(type) belongs on stream 0, not \(stream)")
    case .nonzero where stream == 0:
      throw WireError(.invalidStream, "\(type) is about a stream and can't be on stream 0")
    default:
      return .take
    }
  }

  /// The side that receives a type of frame, and on which streams.
  private struct Rule {
    enum Stream {
      case zero, nonzero, any
    }

    /// Nil for both.
    var receiver: Side?
    var stream: Stream

    init?(_ type: FrameType) {
      switch type {
      case .hello: (receiver, stream) = (.broker, .zero)
      case .welcome, .goAway: (receiver, stream) = (.client, .zero)
      case .ping, .pong: (receiver, stream) = (nil, .zero)
      case .error: (receiver, stream) = (nil, .any)
      case .demand, .complete: (receiver, stream) = (nil, .nonzero)
      case .subscribe, .cancel, .publishOpen, .publish, .topicCreate, .topicShow, .topicList, .topicDelete,
        .topicConnect, .topicDisconnect, .subscribePattern, .positions, .joinGroup, .settle, .commit,
        .cursorList, .cursorMove, .cursorDelete, .authenticate, .topicSet, .topicTrim, .connectionList,
        .connectionClose, .brokerShow, .clusterShow, .clusterDrain, .clusterMove, .lend, .stateList,
        .stateRestore, .origin:
        (receiver, stream) = (.broker, .nonzero)
      case .subscribed, .deliver, .live, .lag, .cancelled, .publishOpened, .ack, .topicInfo, .topics, .done,
        .connected, .disconnected, .matched, .unmatched, .selectTopic, .producers, .deliveries, .cursors,
        .authenticated, .connections, .brokerInfo, .clusterInfo, .redirect, .offer, .states, .floor:
        (receiver, stream) = (.client, .nonzero)
      default: return nil
      }
    }
  }
}
