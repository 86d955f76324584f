import SluiceSession
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Every frame about a stream, in every state of a stream.
struct SessionStreamTableTests {
  typealias Outcome = SessionProbe.Outcome

  enum State: CaseIterable {
    case neverUsed
    case subscription
    case publication
    case request
    /// Ended by the broker.
    case ended
    /// Cancelled by the client.
    case givenBack
  }

  enum Sent: CaseIterable {
    case subscribe
    case join
    case settle
    case openPublication
    case publish
    case demand
    case complete
    case cancel
    case show
  }

  @Test(arguments: State.allCases, [false, true])
  func theTable(state: State, draining: Bool) {
    for frame in Sent.allCases {
      var probe = Self.probe(in: state)
      if draining { probe.session.drain() }
      let expected = draining ? Self.whileDraining(frame, state) : Self.whileOpen(frame, state)
      #expect(Self.send(frame, to: &probe) == expected, "\(frame) on a stream that is \(state)")
    }
  }

  private static func whileOpen(_ frame: Sent, _ state: State) -> Outcome {
    switch (frame, state) {
    // A frame that opens a stream needs an unused one.
    case (.subscribe, .neverUsed), (.subscribe, .ended), (.subscribe, .givenBack):
      .subscribe(stream: 1, topic: "t")
    case (.join, .neverUsed), (.join, .ended), (.join, .givenBack): .join(stream: 1, group: "g")
    case (.openPublication, .neverUsed), (.openPublication, .ended), (.openPublication, .givenBack):
      .openPublication(stream: 1, topic: "t")
    case (.show, .neverUsed), (.show, .ended), (.show, .givenBack):
      .showTopic(stream: 1, topic: "t")
    case (.subscribe, _), (.join, _), (.openPublication, _), (.show, _): .connectionError(.invalidStream)

    // A frame about a stream needs one that is open for it.
    case (.publish, .publication):
      .append(stream: 1, count: 2, batch: SessionProbe.batch([3, 0]).bytes)
    case (.demand, .subscription): .demand(stream: 1, grantedThrough: 100)
    case (.complete, .publication): .complete(stream: 1, .finished)
    case (.settle, .subscription): .settle(stream: 1, settlement)
    // The broker's end of the stream and the client's frame crossed.
    case (.publish, .ended), (.demand, .ended), (.complete, .ended), (.settle, .ended): .nothing
    case (.publish, _), (.demand, _), (.complete, _), (.settle, _): .connectionError(.invalidStream)

    case (.cancel, .subscription), (.cancel, .publication): .cancel(stream: 1)
    case (.cancel, .request), (.cancel, .ended), (.cancel, .givenBack): .confirmCancel(stream: 1)
    case (.cancel, .neverUsed): .connectionError(.invalidStream)
    }
  }

  private static func whileDraining(_ frame: Sent, _ state: State) -> Outcome {
    switch (frame, state) {
    case (.subscribe, .neverUsed), (.subscribe, .ended), (.subscribe, .givenBack),
      (.join, .neverUsed), (.join, .ended), (.join, .givenBack),
      (.openPublication, .neverUsed), (.openPublication, .ended), (.openPublication, .givenBack),
      (.show, .neverUsed), (.show, .ended), (.show, .givenBack):
      .fault(stream: 1, .shuttingDown)
    // Nothing is published any longer; the producer notices the missing acknowledgement.
    case (.publish, .publication), (.complete, .publication): .nothing
    default: whileOpen(frame, state)
    }
  }

  private static let settlement = Settle(.acknowledge, delivery: 1, firstOffset: 3, count: 2)

  @Test func aVerdictThatNobodyKnowsEndsTheStreamAndNothingElse() {
    var probe = Self.probe(in: .subscription)
    var frame = Self.settlement.encoded(stream: 1)
    frame[FrameHeader.size] = 9
    #expect(probe.receive(raw: frame) == .fault(stream: 1, .unsupported))
    #expect(probe.receive(Self.settlement, stream: 1) == .nothing)
  }

  private static func probe(in state: State) -> SessionProbe {
    var probe = SessionProbe.open()
    switch state {
    case .neverUsed: break
    case .subscription:
      _ = probe.receive(Subscribe(topic: "t", grantedThrough: 5), stream: 1)
    case .publication:
      _ = probe.receive(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
      _ = probe.grant(10, to: 1)
    case .request:
      _ = probe.receive(TopicShow(topic: "t"), stream: 1)
    case .ended:
      _ = probe.receive(Subscribe(topic: "t", grantedThrough: 5), stream: 1)
      probe.session.ended(1)
    case .givenBack:
      _ = probe.receive(Subscribe(topic: "t", grantedThrough: 5), stream: 1)
      _ = probe.receive(Cancel(), stream: 1)
    }
    return probe
  }

  private static func send(_ frame: Sent, to probe: inout SessionProbe) -> Outcome {
    switch frame {
    case .subscribe: probe.receive(Subscribe(topic: "t", grantedThrough: 0), stream: 1)
    case .join: probe.receive(JoinGroup(topic: "t", group: "g", grantedThrough: 0), stream: 1)
    case .settle: probe.receive(settlement, stream: 1)
    case .openPublication:
      probe.receive(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    case .publish: probe.publish([3, 0], from: 0, stream: 1)
    case .demand: probe.receive(Demand(grantedThrough: 100), stream: 1)
    case .complete: probe.receive(Complete(.finished), stream: 1)
    case .cancel: probe.receive(Cancel(), stream: 1)
    case .show: probe.receive(TopicShow(topic: "t"), stream: 1)
    }
  }
}
