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
      // Most acknowledgements of messages at QoS 0, and most grants, need no further work.
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
    // Once the client has disconnected, only its publications matter.
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

  /// Whether anything waits for the client to read.
  private var isHeldUp: Bool { !held.isEmpty || unsent > 0 }

  func linkDrained() {
    takeUnread()
    endTurn()
  }

  /// The broker ends the connection for this reason.
  private func failed(_ fault: Fault) {
    let reason = MQTTReason(fault.code)
    if requested.take() != nil { return refuse(reason, fault.message) }
    // The broker refuses an excess connection before any bytes arrive: the client gets the error in the version that it uses.
    if fault.code == .tooManyConnections, phase == .open, session.awaitsConnect {
      return hand(to: MQTTError(reason, fault.message))
    }
    isCutOff = true
    play { session, output, perform in
      session.close(reason, fault.message, output: &output, perform)
    }
  }
}
