import SluiceSession
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// A session under test: frames are passed as values, and the results can be compared.
struct SessionProbe {
  /// The session's reaction to a frame.
  enum Outcome: Equatable {
    case nothing
    case append(stream: UInt32, count: UInt32, batch: [UInt8])
    case demand(stream: UInt32, grantedThrough: UInt64)
    case welcome(client: String)
    case authenticate(Credentials)
    case renew(stream: UInt32, Credentials)
    case subscribe(stream: UInt32, topic: String)
    case subscribePattern(stream: UInt32, pattern: String, positions: Int, grantedThrough: UInt64)
    case lend(stream: UInt32, Lend)
    case join(stream: UInt32, group: String)
    case settle(stream: UInt32, Settle)
    case openPublication(stream: UInt32, topic: String)
    case complete(stream: UInt32, Complete.Ending)
    case cancel(stream: UInt32)
    case confirmCancel(stream: UInt32)
    case createTopic(stream: UInt32, topic: String)
    case showTopic(stream: UInt32, topic: String)
    case listTopics(stream: UInt32, after: String, limit: UInt32)
    case deleteTopic(stream: UInt32, topic: String)
    case connectTopic(stream: UInt32, topic: String, isConnected: Bool)
    case commit(stream: UInt32, nextOffset: UInt64)
    case listCursors(stream: UInt32, topic: String, after: String, limit: UInt32)
    case moveCursor(stream: UInt32, name: String)
    case deleteCursor(stream: UInt32, topic: String, name: String)
    case setTopic(stream: UInt32, TopicSet)
    case trimTopic(stream: UInt32, TopicTrim)
    case listStates(stream: UInt32, StateList)
    case restoreStates(stream: UInt32, StateRestore)
    case listConnections(stream: UInt32, after: UInt64, limit: UInt32)
    case closeConnection(stream: UInt32, connection: UInt64)
    case showBroker(stream: UInt32)
    case showCluster(stream: UInt32, ClusterShow)
    case drainNode(stream: UInt32, ClusterDrain)
    case moveShard(stream: UInt32, ClusterMove)
    case pong(token: UInt64)
    /// The stream ends.
    case fault(stream: UInt32, ErrorCode)
    /// The connection ends.
    case connectionError(ErrorCode)
  }

  /// A class, since a session can't be copied but tests compare copies.
  private final class Box {
    var session = ServerSession()
    var rules = ServerSessionRules(
      handshake: ServerHandshake(
        offer: Welcome(
          maximumFrame: 1 << 20, maximumRecord: 1000, maximumStreams: 8, keepalive: 1000, broker: 1,
          software: "test")),
      maximumRecord: 1000, maximumStreams: 8, maximumPositions: 5)
  }

  private let box = Box()

  var session: ServerSession {
    _read { yield box.session }
    _modify { yield &box.session }
  }

  var rules: ServerSessionRules {
    _read { yield box.rules }
    _modify { yield &box.rules }
  }

  /// A session after its handshake.
  static func open() -> SessionProbe {
    var probe = SessionProbe()
    _ = probe.receive(Hello(maximumFrame: 1 << 20, keepalive: 0, name: "client"), stream: 0)
    return probe
  }

  /// A session that received HELLO with credentials, and has to verify them.
  static func asking(_ credentials: Credentials = .none) -> SessionProbe {
    var probe = SessionProbe()
    probe.rules.asksIdentity = true
    let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "client", credentials: credentials)
    _ = probe.receive(hello, stream: 0)
    return probe
  }

  mutating func receive(_ frame: some Frame, stream: UInt32) -> Outcome {
    receive(raw: frame.encoded(stream: stream))
  }

  /// A PUBLISH of plain records with these payload sizes.
  mutating func publish(
    _ sizes: [Int], from sequence: UInt64, count: UInt32? = nil, stream: UInt32
  ) -> Outcome {
    receive(raw: Self.publishFrame(Self.batch(sizes), from: sequence, count: count, stream: stream))
  }

  mutating func receive(raw frame: [UInt8]) -> Outcome {
    frame.withUnsafeBytes { bytes in
      let header = FrameHeader(at: bytes.baseAddress!)
      let body = UnsafeRawBufferPointer(rebasing: bytes[FrameHeader.size...])
      do throws(WireError) {
        return Outcome(try box.session.receive(header, body, box.rules))
      } catch {
        return .connectionError(error.code)
      }
    }
  }

  mutating func answers(_ request: StreamToken?) -> Bool {
    session.answers(request)
  }

  /// The DEMAND for a publication that gets this additional grant.
  mutating func grant(_ records: UInt64, bytes: UInt64 = Credit.unlimited, to stream: UInt32) -> Demand? {
    session.grant(PublishingBudget.Allowance(records: records, bytes: bytes), to: stream)
  }

  static func batch(_ sizes: [Int]) -> BatchBuilder {
    var batch = BatchBuilder()
    for size in sizes { [UInt8](repeating: 0x61, count: size).withUnsafeBytes { batch.append($0) } }
    return batch
  }

  static func publishFrame(
    _ batch: BatchBuilder, from sequence: UInt64, count: UInt32? = nil, stream: UInt32
  ) -> [UInt8] {
    var front = [UInt8](repeating: 0, count: FrameHeader.size + PublishHeader.size)
    front.withUnsafeMutableBytes {
      PublishHeader(firstSequence: sequence, count: count ?? batch.count)
        .write(at: $0.baseAddress!, stream: stream, batchLength: batch.bytes.count)
    }
    return front + batch.bytes
  }
}

extension SessionProbe.Outcome {
  init(_ action: ServerAction) {
    self =
      switch action {
      case .none, .openingPattern, .readPositions: .nothing
      case .append(let stream, let count, let batch, _):
        .append(stream: stream, count: count, batch: [UInt8](batch))
      case .demand(let stream, let granted): .demand(stream: stream, grantedThrough: granted)
      case .welcome(let agreement): .welcome(client: agreement.clientName)
      case .authenticate(let agreement): .authenticate(agreement.credentials)
      case .renew(let stream, let credentials): .renew(stream: stream, credentials)
      case .subscribe(let stream, let frame): .subscribe(stream: stream, topic: frame.topic)
      case .subscribePattern(let stream, let frame):
        .subscribePattern(
          stream: stream, pattern: frame.pattern, positions: frame.positions.count,
          grantedThrough: frame.grantedThrough)
      case .lend(let stream, let loan): .lend(stream: stream, loan)
      case .join(let stream, let frame): .join(stream: stream, group: frame.group)
      case .settle(let stream, let frame): .settle(stream: stream, frame)
      case .openPublication(let stream, let frame): .openPublication(stream: stream, topic: frame.topic)
      case .complete(let stream, let ending): .complete(stream: stream, ending)
      case .cancel(let stream): .cancel(stream: stream)
      case .confirmCancel(let stream): .confirmCancel(stream: stream)
      case .fault(let stream, let fault): .fault(stream: stream, fault.code)
      case .createTopic(let stream, let frame): .createTopic(stream: stream, topic: frame.topic)
      case .showTopic(let stream, let topic): .showTopic(stream: stream, topic: topic)
      case .listTopics(let stream, let after, let limit):
        .listTopics(stream: stream, after: after, limit: limit)
      case .deleteTopic(let stream, let topic): .deleteTopic(stream: stream, topic: topic)
      case .connectTopic(let stream, let topic, let isConnected):
        .connectTopic(stream: stream, topic: topic, isConnected: isConnected)
      case .commit(let stream, let offset): .commit(stream: stream, nextOffset: offset)
      case .listCursors(let stream, let topic, let after, let limit):
        .listCursors(stream: stream, topic: topic, after: after, limit: limit)
      case .moveCursor(let stream, let frame): .moveCursor(stream: stream, name: frame.name)
      case .deleteCursor(let stream, let topic, let name):
        .deleteCursor(stream: stream, topic: topic, name: name)
      case .setTopic(let stream, let frame): .setTopic(stream: stream, frame)
      case .trimTopic(let stream, let frame): .trimTopic(stream: stream, frame)
      case .listStates(let stream, let frame): .listStates(stream: stream, frame)
      case .restoreStates(let stream, let frame): .restoreStates(stream: stream, frame)
      case .listConnections(let stream, let after, let limit):
        .listConnections(stream: stream, after: after, limit: limit)
      case .closeConnection(let stream, let connection):
        .closeConnection(stream: stream, connection: connection)
      case .showBroker(let stream): .showBroker(stream: stream)
      case .showCluster(let stream, let frame): .showCluster(stream: stream, frame)
      case .drainNode(let stream, let frame): .drainNode(stream: stream, frame)
      case .moveShard(let stream, let frame): .moveShard(stream: stream, frame)
      case .pong(let token): .pong(token: token)
      }
  }
}
