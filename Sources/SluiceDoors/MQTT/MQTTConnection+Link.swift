import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

// Frames of the broker.
extension MQTTConnection: DoorLinkClient {
  func linkStarted() {
    isRead = true
    transport.start(handle)
    updateTimer()
  }

  func linkReceived(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Bool {
    do {
      let action = try unsafe native.receive(header, body, at: loop.now.nanoseconds)
      switch action {
      // Acknowledgements of messages at QoS 0, and grants, mostly concern nothing that waits.
      case .acknowledged(let stream, let ack): acknowledged(stream, ack)
      case .granted: break
      default:
        hasNews = true
        take(action)
      }
    } catch {
      play { session, output, perform in
        session.close(.unspecified, error.message, output: &output, perform)
      }
    }
    // Of a client that has left only its publications count.
    return phase != .open || unsent <= Self.maximumOutput && !isHeldByOutput
  }

  private func take(_ action: ClientAction) {
    switch action {
    case .deliver(let stream, let header, let batch): unsafe deliver(stream, header, batch)
    case .opened(let welcome): welcomed(welcome)
    case .failed(let fault): failed(fault)
    case .answerPing(let token): link.send(Pong(token: token), stream: 0)
    case .publicationOpened(let stream, let frame): publicationOpened(stream, next: frame.nextSequence)
    case .subscribed(let stream, let place): subscribed(stream, place)
    case .matched(let stream, let matched): self.matched(stream, matched)
    case .unmatched(let stream, let number): unmatched(stream, number)
    case .selectedTopic(let stream, let number): selected(stream, number)
    case .topicEnded(let stream, let ending): topicEnded(stream, ending)
    case .deliveries(let stream, let count): feeds[stream]?.delivery = count
    case .live(let stream, _): live(stream)
    case .ended(let stream, let ending): streamEnded(stream, ending)
    case .refused(let stream, let fault): streamRefused(stream, WireError(fault))
    case .lagged(let stream, let lag): feeds[stream]?.current?.nextOffset = lag.nextOffset
    case .none, .granted, .acknowledged, .cancelled, .completed, .connection, .producers, .pong, .goAway,
      .topicInfo, .topics, .cursors, .states, .connections, .brokerInfo, .clusterInfo, .done, .authenticated,
      .redirected:
      break
    }
  }

  func linkWritten() {
    guard hasNews || phase != .open || pendingBytes > 0 || areClosing || !unread.isEmpty || isHeldUp else {
      return
    }
    takeUnread()
    endTurn()
  }

  /// Whether something waits for the client to read.
  private var isHeldUp: Bool { !held.isEmpty || unsent > 0 }

  func linkDrained() {
    takeUnread()
    endTurn()
  }

  /// The broker ends the connection, and has said why.
  private func failed(_ fault: Fault) {
    let reason = MQTTReason(fault.code)
    if requested.take() != nil { return refuse(reason, fault.message) }
    // The broker refuses a connection too many before anything has come: the client is told in the version that it speaks.
    if fault.code == .tooManyConnections, phase == .open, session.awaitsConnect {
      return hand(to: MQTTError(reason, fault.message))
    }
    isCutOff = true
    play { session, output, perform in
      session.close(reason, fault.message, output: &output, perform)
    }
  }
}
