import SluiceWire
import TestSupport
import Testing

@testable import SluiceSession

/// Frames in, actions out.
@Suite struct ClientSessionTests {
  private final class Script {
    var session: ClientSession
    /// Whether the session is packed and restored whenever it is idle, and how often it was.
    var packsWhenQuiet = false
    private(set) var packings = 0
    private var copies: [UnsafeMutableRawBufferPointer] = []

    init(features: UInt64 = 0) {
      session = ClientSession(features: features)
    }

    deinit {
      for copy in copies { copy.deallocate() }
    }

    /// The result of a frame, given as bytes.
    func receive(_ bytes: [UInt8], at now: UInt64 = 0) throws(WireError) -> ClientAction {
      let result: Result<ClientAction, WireError> = bytes.withUnsafeBytes { all in
        let body = UnsafeRawBufferPointer(rebasing: all[FrameHeader.size...])
        do throws(WireError) {
          let action = try session.receive(FrameHeader(at: all.baseAddress!), body, at: now)
          guard case .deliver(let stream, let header, let batch) = action else { return .success(action) }
          // The frame's bytes are freed, but the copy stays for the comparison.
          let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: batch.count, alignment: 1)
          copy.copyMemory(from: batch)
          copies.append(copy)
          return .success(.deliver(stream: stream, header, batch: UnsafeRawBufferPointer(copy)))
        } catch {
          return .failure(error)
        }
      }
      if packsWhenQuiet, session.isQuiet { pack() }
      return try result.get()
    }

    private func pack() {
      var writer = PackedWriter()
      session.pack(into: &writer)
      var reader = PackedReader(writer.bytes)
      session = ClientSession(unpacking: &reader, now: 0)
      packings += 1
    }

    func receive(_ frame: some Frame, _ stream: UInt32) throws(WireError) -> ClientAction {
      try receive(frame.encoded(stream: stream))
    }

    /// The code of the error that a frame causes.
    func violation(_ bytes: [UInt8]) -> ErrorCode? {
      do throws(WireError) {
        _ = try receive(bytes)
        return nil
      } catch {
        return error.code
      }
    }

    func violation(_ frame: some Frame, _ stream: UInt32) -> ErrorCode? {
      violation(frame.encoded(stream: stream))
    }

    func openSubscription(granted: UInt64) -> UInt32? { session.openSubscription(granted: granted) }
    func openPublication(isSource: Bool = false) -> UInt32? { session.openPublication(isSource: isSource) }
    func openRequest() -> UInt32? { session.openRequest() }
    func grant(_ stream: UInt32, through: UInt64) -> Bool { session.grant(stream, through: through) }
    func available(_ stream: UInt32) -> UInt64 { session.available(stream) }
    func availableBytes(_ stream: UInt32) -> UInt64 { session.availableBytes(stream) }
    func publish(_ stream: UInt32, count: UInt32, bytes: Int = 0) -> UInt64 {
      session.publish(stream, count: count, bytes: bytes)
    }
    func completePublication(_ stream: UInt32) -> Bool { session.completePublication(stream) }
    func cancel(_ stream: UInt32) -> Bool { session.cancel(stream) }
    func heard(at now: UInt64) { session.heard(at: now) }
    func watch(at now: UInt64) -> ClientSession.Watch { session.watch(at: now) }

    static func open(_ welcome: Welcome = .test()) throws -> Script {
      let script = Script()
      _ = try script.receive(welcome, 0)
      return script
    }

    /// With an open subscription on stream 1.
    static func subscribed(granted: UInt64, from offset: UInt64 = 0) throws -> Script {
      let script = try open()
      _ = try #require(script.openSubscription(granted: granted))
      _ = try script.receive(Subscribed(epoch: 1, nextOffset: offset, liveOffset: offset), 1)
      return script
    }

    /// With an open publication on stream 1.
    static func publishing(granted: UInt64) throws -> Script {
      let script = try open()
      _ = try #require(script.openPublication())
      _ = try script.receive(PublishOpened(epoch: 1, grantedThrough: granted), 1)
      return script
    }
  }

  // MARK: Handshake

  @Test func welcomeOpensTheSession() throws {
    let script = Script()
    let welcome = Welcome.test()
    #expect(try script.receive(welcome, 0) == .opened(welcome))
    #expect(script.session.phase == .open)
  }

  @Test func answersAboutTheBrokerFreeTheirStreams() throws {
    let script = try Script.open()
    let connection = ConnectionInfo(
      connection: 1, client: "c", identity: "", peer: "p", security: "", age: 2, subscriptions: 3,
      publications: 4,
      buffered: 5)
    let page = Connections(connections: [connection], more: false)
    let info = BrokerInfo(
      time: 1, uptime: 2, storage: StorageStatus(), stopped: 0, stoppedTopics: [],
      numbers: [BrokerInfo.Number(name: "topics", value: 3)])
    #expect(script.openRequest() == 1)
    #expect(try script.receive(page, 1) == .connections(stream: 1, page))
    #expect(script.violation(page, 1) == .invalidStream)
    #expect(script.openRequest() == 1)
    #expect(try script.receive(info, 1) == .brokerInfo(stream: 1, info))
    #expect(info["topics"] == 3 && info["none"] == nil)
    #expect(script.openRequest() == 1)
    let cluster = ClusterInfo(
      name: "n1", unreadiness: "", engine: ClusterInfo.Engine(isConnected: true), nodes: [], shardCount: 0,
      shards: [], numbers: [BrokerInfo.Number(name: "take_overs", value: 3)])
    #expect(try script.receive(cluster, 1) == .clusterInfo(stream: 1, cluster))
    #expect(cluster["take_overs"] == 3 && cluster["none"] == nil)
    #expect(script.openRequest() == 1)
  }

  // MARK: Redirects

  private static let redirect = Redirect(node: "b", address: "b:7420")

  private func redirected() throws -> Script {
    let script = Script(features: Feature.redirects)
    _ = try script.receive(Welcome.test(features: Feature.redirects, maximumStreams: 9), 0)
    return script
  }

  @Test func aRedirectFreesTheStreamThatOpens() throws {
    let script = try redirected()
    #expect(script.openSubscription(granted: 1) == 1)
    #expect(try script.receive(Self.redirect, 1) == .redirected(stream: 1, Self.redirect))
    #expect(script.openPublication() == 1)
    #expect(try script.receive(Self.redirect, 1) == .redirected(stream: 1, Self.redirect))
    #expect(script.violation(Self.redirect, 1) == .invalidStream)
  }

  @Test func aRedirectOfACancelledStreamMeansNothing() throws {
    let script = try redirected()
    #expect(script.openSubscription(granted: 1) == 1)
    #expect(script.cancel(1))
    #expect(try script.receive(Self.redirect, 1) == .none)
    #expect(try script.receive(Cancelled(), 1) == .cancelled)
  }

  @Test func aRedirectIsForOpeningStreamsOfClientsThatTakeIt() throws {
    let plain = try Script.open()
    #expect(plain.openSubscription(granted: 1) == 1)
    #expect(plain.violation(Self.redirect, 1) == .unexpectedFrame)
    let script = try redirected()
    #expect(script.openRequest() == 1)
    #expect(script.violation(Self.redirect, 1) == .unexpectedFrame)
    #expect(script.openSubscription(granted: 1) == 2)
    _ = try script.receive(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 2)
    #expect(script.violation(Self.redirect, 2) == .unexpectedFrame)
    #expect(script.session.openSubscription(granted: 1, isPattern: true) == 3)
    #expect(script.violation(Self.redirect, 3) == .unexpectedFrame)
    #expect(script.openPublication() == 4)
    _ = try script.receive(PublishOpened(epoch: 1, grantedThrough: 1), 4)
    #expect(script.violation(Self.redirect, 4) == .unexpectedFrame)
  }

  @Test func onlyFeaturesThatWereNamedCanBeGranted() {
    #expect(Script().violation(Welcome.test(features: Feature.redirects), 0) == .malformedFrame)
    #expect(Script(features: Feature.redirects).violation(Welcome.test(features: 2), 0) == .malformedFrame)
  }

  @Test func aRefusalDuringTheHandshakeIsHandedOn() throws {
    let script = Script()
    let fault = Fault(code: .tooManyConnections, message: "full")
    #expect(try script.receive(fault, 0) == .failed(fault))
  }

  @Test func anotherFirstFrameMeansAnotherProtocol() {
    let script = Script()
    #expect(script.violation(Ping(token: 1), 0) == .notSluice)
    #expect(script.violation(Welcome.test(version: 2), 0) == .versionMismatch)
    #expect(script.violation(Welcome.test(maximumFrame: 1), 0) == .malformedFrame)
    #expect(script.violation(Welcome.test(maximumStreams: 0), 0) == .malformedFrame)
    #expect(script.session.phase == .handshake)
  }

  @Test func unknownFramesAreSkippedOrRefusedByTheirType() throws {
    let script = try Script.open()
    let header = FrameHeader(length: 0, type: FrameType(rawValue: 0x90), stream: 9)
    var bytes = [UInt8](repeating: 0, count: FrameHeader.size)
    bytes.withUnsafeMutableBytes { header.write(at: $0.baseAddress!) }
    #expect(try script.receive(bytes) == .none)
    bytes[4] = 0x70
    #expect(script.violation(bytes) == .unsupportedFrame)
    #expect(script.violation(Cancel(), 1) == .unexpectedFrame)
  }

  // MARK: Stream numbers

  @Test func streamNumbersAreDenseAndLimited() throws {
    let script = try Script.open()
    #expect(script.openSubscription(granted: 0) == 1)
    #expect(script.openPublication() == 2)
    #expect(script.openRequest() == 3)
    #expect(script.openRequest() == nil)
  }

  @Test func aNumberIsFreeWithTheLastFrameOnly() throws {
    let script = try Script.subscribed(granted: 1)
    #expect(script.cancel(1))
    #expect(!script.cancel(1))
    #expect(script.openSubscription(granted: 0) == 2)
    #expect(try script.receive(Cancelled(), 1) == .cancelled)
    #expect(script.openSubscription(granted: 0) == 1)
    #expect(
      try script.receive(Fault(code: .unknownTopic, message: ""), 2)
        == .refused(stream: 2, Fault(code: .unknownTopic, message: "")))
    #expect(script.openRequest() == 2)
    #expect(try script.receive(Done(), 2) == .done(stream: 2))
    #expect(script.openRequest() == 2)
  }

  @Test func whatComesBetweenCancelAndCancelledIsDropped() throws {
    let script = try Script.subscribed(granted: 1)
    #expect(script.cancel(1))
    #expect(try script.receive(deliver(stream: 1, firstOffset: 0, ["a", "b"])) == .none)
    #expect(try script.receive(Live(nextOffset: 0), 1) == .none)
    #expect(try script.receive(Lag(missed: 1, nextOffset: 1), 1) == .none)
    #expect(try script.receive(Complete(.finished), 1) == .none)
    #expect(try script.receive(Fault(code: .topicDeleted, message: ""), 1) == .none)
    #expect(try script.receive(Cancelled(), 1) == .cancelled)
    #expect(script.violation(Cancelled(), 1) == .invalidStream)
  }

  @Test func aSubscriptionCancelledBeforeItStandsIsDroppedToo() throws {
    let script = try Script.open()
    _ = script.openSubscription(granted: 1)
    #expect(script.cancel(1))
    #expect(try script.receive(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1) == .none)
    #expect(try script.receive(Cancelled(), 1) == .cancelled)
  }

  // MARK: Subscriptions

  @Test func aBatchWithinTheGrantIsHandedOn() throws {
    let script = try Script.subscribed(granted: 3, from: 10)
    let action = try script.receive(deliver(stream: 1, firstOffset: 10, ["a", "b"]))
    let records = batch(["a", "b"])
    let isAsSent = records.withUnsafeBytes {
      action == .deliver(stream: 1, DeliverHeader(firstOffset: 10, count: 2), batch: $0)
    }
    #expect(isAsSent)
    #expect(script.violation(deliver(stream: 1, firstOffset: 12, ["c", "d"])) == .demandExceeded)
  }

  @Test func grantsOnlyGrow() throws {
    let script = try Script.subscribed(granted: 1)
    #expect(!script.grant(1, through: 1))
    #expect(script.grant(1, through: 2))
    #expect(!script.grant(1, through: 1))
    #expect(script.grant(1, through: Credit.unlimited))
    #expect(!script.grant(1, through: 5))
    #expect(!script.grant(2, through: 5))
  }

  @Test func offsetsLeaveNoGapButWhereALagIs() throws {
    let script = try Script.subscribed(granted: 10)
    #expect(script.violation(deliver(stream: 1, firstOffset: 1, ["b"])) == .malformedBatch)
    _ = try script.receive(deliver(stream: 1, firstOffset: 0, ["a"]))
    let lag = Lag(missed: 4, nextOffset: 5)
    #expect(try script.receive(lag, 1) == .lagged(stream: 1, lag))
    #expect(script.violation(deliver(stream: 1, firstOffset: 1, ["b"])) == .malformedBatch)
    _ = try script.receive(deliver(stream: 1, firstOffset: 5, ["f"]))
    #expect(script.violation(Lag(missed: 1, nextOffset: 2), 1) == .malformedFrame)
  }

  @Test func offsetsMayGoOnWhereTheBrokerHasSaidSo() throws {
    let script = try Script.open()
    _ = script.openSubscription(granted: 10)
    _ = try script.receive(Subscribed(epoch: 1, nextOffset: 2, liveOffset: 9, gaps: true), 1)
    _ = try script.receive(deliver(stream: 1, firstOffset: 4, ["e"]))
    #expect(script.violation(deliver(stream: 1, firstOffset: 4, ["e"])) == .malformedBatch)
    #expect(script.violation(Live(nextOffset: 4), 1) == .malformedFrame)
    _ = try script.receive(Live(nextOffset: 9), 1)
    #expect(script.violation(deliver(stream: 1, firstOffset: 8, ["i"])) == .malformedBatch)
    _ = try script.receive(deliver(stream: 1, firstOffset: 9, ["j"]))
    // Beyond all offsets.
    #expect(script.violation(deliver(stream: 1, firstOffset: .max, ["z"])) == .malformedFrame)
    // Deletions that are no longer known, so there is no step.
    let lag = Lag(missed: 3, nextOffset: 10)
    #expect(try script.receive(lag, 1) == .lagged(stream: 1, lag))
  }

  @Test func liveComesOnce() throws {
    let script = try Script.subscribed(granted: 1)
    #expect(try script.receive(Live(nextOffset: 0), 1) == .live(stream: 1, Live(nextOffset: 0)))
    #expect(script.violation(Live(nextOffset: 0), 1) == .unexpectedFrame)
  }

  @Test func nothingPrecedesSubscribed() throws {
    let script = try Script.open()
    _ = script.openSubscription(granted: 5)
    #expect(script.violation(deliver(stream: 1, firstOffset: 0, ["a"])) == .unexpectedFrame)
    #expect(script.violation(Live(nextOffset: 0), 1) == .unexpectedFrame)
    #expect(script.violation(Complete(.finished), 1) == .unexpectedFrame)
    _ = try script.receive(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1)
    #expect(script.violation(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1) == .unexpectedFrame)
  }

  @Test func unknownStreamsAreViolations() throws {
    let script = try Script.open()
    #expect(script.violation(deliver(stream: 3, firstOffset: 0, ["a"])) == .invalidStream)
    #expect(script.violation(Ack(through: 1, lastOffset: 0), 1) == .invalidStream)
    #expect(script.violation(Fault(code: .unknownTopic, message: ""), 4_000_000_000) == .invalidStream)
    #expect(script.violation(Done(), 1) == .invalidStream)
  }

  @Test func aTerminalEventEndsTheStream() throws {
    let script = try Script.subscribed(granted: 5)
    let ending = Complete.Ending.failure(code: .producerFailure, message: "broken")
    #expect(try script.receive(Complete(ending), 1) == .ended(stream: 1, ending))
    #expect(script.violation(deliver(stream: 1, firstOffset: 0, ["a"])) == .invalidStream)
    #expect(!script.cancel(1))
  }

  // MARK: Publications

  @Test func nothingIsGrantedBeforeThePublicationStands() throws {
    let script = try Script.open()
    _ = script.openPublication()
    #expect(script.available(1) == 0)
    let opened = PublishOpened(epoch: 1, grantedThrough: 4)
    #expect(try script.receive(opened, 1) == .publicationOpened(stream: 1, opened))
    #expect(script.available(1) == 4)
  }

  @Test func aSourceIsToldInTurnWhetherTheTopicIsConnected() throws {
    for first in [true, false] {
      let script = try Script.open()
      #expect(script.openPublication(isSource: true) == 1)
      #expect(script.violation(Connected(), 1) == .unexpectedFrame)
      _ = try script.receive(PublishOpened(epoch: 1, grantedThrough: 0), 1)
      for isConnected in [first, !first, first] {
        let action = isConnected ? try script.receive(Connected(), 1) : try script.receive(Disconnected(), 1)
        #expect(action == .connection(stream: 1, isConnected: isConnected))
      }
      #expect(
        (first ? script.violation(Connected(), 1) : script.violation(Disconnected(), 1)) == .unexpectedFrame)
      #expect(script.cancel(1))
      #expect(try script.receive(Connected(), 1) == .none)
    }
    let producer = try Script.publishing(granted: 1)
    #expect(producer.violation(Connected(), 1) == .unexpectedFrame)
    #expect(producer.violation(Disconnected(), 1) == .unexpectedFrame)
    #expect(producer.violation(Disconnected(), 2) == .invalidStream)
  }

  @Test func publishingSpendsTheGrant() throws {
    let script = try Script.publishing(granted: 4)
    #expect(script.publish(1, count: 3) == 0)
    #expect(script.publish(1, count: 1) == 3)
    #expect(script.available(1) == 0)
    #expect(try script.receive(Demand(grantedThrough: 3), 1) == .none)
    #expect(try script.receive(Demand(grantedThrough: 6), 1) == .granted(stream: 1))
    #expect(script.available(1) == 2)
    #expect(try script.receive(Demand(grantedThrough: Credit.unlimited), 1) == .granted(stream: 1))
    #expect(script.available(1) == Credit.unlimited)
  }

  @Test func bytesLimitWhatMayBePublishedToo() throws {
    let script = try Script.open()
    _ = script.openPublication()
    let opened = PublishOpened(epoch: 1, grantedThrough: 10, bytesThrough: 50)
    #expect(try script.receive(opened, 1) == .publicationOpened(stream: 1, opened))
    #expect(script.available(1) == 10)
    #expect(script.availableBytes(1) == 50)
    _ = script.publish(1, count: 1, bytes: 30)
    #expect(script.availableBytes(1) == 20)
    // One batch may exceed the remaining grant.
    _ = script.publish(1, count: 1, bytes: 70)
    #expect(script.available(1) == 0)
    #expect(script.availableBytes(1) == 0)
    #expect(try script.receive(Demand(grantedThrough: 10, bytesThrough: 50), 1) == .none)
    #expect(try script.receive(Demand(grantedThrough: 10, bytesThrough: 101), 1) == .granted(stream: 1))
    #expect(script.available(1) == 8)
    #expect(script.availableBytes(1) == 1)
  }

  @Test func acknowledgementsCountWhatWasPublished() throws {
    let script = try Script.publishing(granted: 10)
    _ = script.publish(1, count: 5)
    let ack = Ack(through: 3, lastOffset: 8)
    #expect(try script.receive(ack, 1) == .acknowledged(stream: 1, ack))
    #expect(try script.receive(ack, 1) == .none)
    #expect(script.violation(Ack(through: 6, lastOffset: 9), 1) == .malformedFrame)
  }

  @Test func completingIsConfirmedByCancelled() throws {
    let script = try Script.publishing(granted: 10)
    _ = script.publish(1, count: 1)
    #expect(script.violation(Cancelled(), 1) == .unexpectedFrame)
    #expect(script.completePublication(1))
    #expect(!script.completePublication(1))
    #expect(script.available(1) == 0)
    let ack = Ack(through: 1, lastOffset: 0)
    #expect(try script.receive(ack, 1) == .acknowledged(stream: 1, ack))
    #expect(try script.receive(Cancelled(), 1) == .completed(stream: 1, startedOver: false))
    #expect(script.openRequest() == 1)
  }

  @Test func anotherProducersEndCrossesOurs() throws {
    let script = try Script.publishing(granted: 10)
    #expect(script.completePublication(1))
    #expect(try script.receive(Complete(.finished), 1) == .ended(stream: 1, .finished))
    #expect(script.violation(Cancelled(), 1) == .invalidStream)
  }

  @Test func framesOfTheWrongKindOfStreamAreViolations() throws {
    let script = try Script.publishing(granted: 10)
    #expect(script.violation(deliver(stream: 1, firstOffset: 0, ["a"])) == .unexpectedFrame)
    #expect(script.violation(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1) == .unexpectedFrame)
    #expect(script.violation(Done(), 1) == .unexpectedFrame)
    let other = try Script.subscribed(granted: 1)
    #expect(other.violation(Ack(through: 0, lastOffset: 0), 1) == .unexpectedFrame)
    #expect(other.violation(Demand(grantedThrough: 9), 1) == .unexpectedFrame)
    #expect(other.violation(PublishOpened(epoch: 1, grantedThrough: 4), 1) == .unexpectedFrame)
  }

  // MARK: Signs of life

  @Test func aSilentBrokerIsPingedThenGivenUp() throws {
    let script = try Script.open(.test(keepalive: 1_000))
    let millisecond: UInt64 = 1_000_000
    #expect(script.watch(at: 0) == .sleep(until: 500 * millisecond))
    #expect(script.watch(at: 500 * millisecond) == .ping(token: 1, next: 1_000 * millisecond))
    #expect(try script.receive(Pong(token: 1), 0) == .pong(token: 1))
    script.heard(at: 600 * millisecond)
    #expect(script.watch(at: 1_000 * millisecond) == .sleep(until: 1_100 * millisecond))
    #expect(script.watch(at: 1_100 * millisecond) == .ping(token: 2, next: 1_600 * millisecond))
    #expect(script.watch(at: 1_600 * millisecond) == .expired)
  }

  @Test func withoutADeadlineNothingIsWatched() throws {
    let script = try Script.open(.test(keepalive: 0))
    #expect(script.watch(at: 1 << 60) == .sleep(until: .max))
  }

  @Test func pingsAreAnswered() throws {
    let script = try Script.open()
    #expect(try script.receive(Ping(token: 77), 0) == .answerPing(token: 77))
  }

  @Test func aDepartureIsToldAndRemembered() throws {
    let script = try Script.subscribed(granted: 1)
    let frame = GoAway(code: .shuttingDown, message: "bye")
    #expect(try script.receive(frame, 0) == .goAway(frame))
    #expect(script.session.phase == .leaving)
    // Granted records are still delivered.
    guard case .deliver = try script.receive(deliver(stream: 1, firstOffset: 0, ["a"])) else {
      Issue.record("not delivered")
      return
    }
  }

  // MARK: Quiet sessions

  /// Two sessions do the same. One is packed and restored at every idle moment.
  @Test func aPackedSessionGoesOnAsIfItHadNotBeen() throws {
    let scripts = try [false, true].map { packs in
      let script = try Script.open(.test(maximumStreams: 2, keepalive: 0))
      script.packsWhenQuiet = packs
      return script
    }
    var random = SeededRandom.printed()
    for step in 0..<3_000 {
      let (choice, stream) = (
        Int.random(in: 0..<12, using: &random), UInt32.random(in: 1...2, using: &random)
      )
      let number = UInt64.random(in: 0..<40, using: &random)
      let results = scripts.map { script -> String in
        do {
          switch choice {
          case 0: return "\(script.openSubscription(granted: number) as Any)"
          case 1: return "\(script.openPublication(isSource: number % 2 == 0) as Any)"
          case 2: return "\(script.grant(stream, through: number * 10))"
          case 3: return "\(script.cancel(stream))"
          case 4: return "\(try script.receive(Cancelled(), stream))"
          case 5:
            return
              "\(try script.receive(Subscribed(epoch: 1, nextOffset: number, liveOffset: number), stream))"
          case 6:
            return "\(try script.receive(PublishOpened(epoch: 1, grantedThrough: number), stream))"
          case 7: return "\(try script.receive(Demand(grantedThrough: number * 8), stream))"
          case 8: return "\(try script.receive(Connected(), stream))"
          case 9: return "\(try script.receive(Live(nextOffset: number), stream))"
          case 10: return "\(try script.receive(Lag(missed: 1, nextOffset: number), stream))"
          default:
            guard script.available(stream) > 0 else { return "\(script.availableBytes(stream))" }
            return "\(script.publish(stream, count: 1, bytes: Int(number)))"
          }
        } catch {
          return "\(error)"
        }
      }
      #expect(results[0] == results[1], "step \(step)")
    }
    #expect(scripts[1].packings > 100)
  }
}
