import Foundation
import SluiceIO
import SluiceSession
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The published sessions, played against a broker: clients send the frames of the session, and must receive the broker's frames in it.
///
/// With `SLUICE_RECORD_VECTORS=1` the broker's frames are written into the file instead of being compared with it. Use it after a change of the
/// protocol.
@Suite struct ProtocolSessionTests {
  private static let document = Result { try ProtocolVectors.load() }
  private static let sessions: [ProtocolVectors.Session] = (try? document.get().sessions) ?? []

  @Test(arguments: sessions) func theBrokerSendsWhatTheSessionShows(_ session: ProtocolVectors.Session) throws
  {
    if ProcessInfo.processInfo.environment["SLUICE_RECORD_VECTORS"] != nil { return }
    let stage = try Stage(session)
    for (number, step) in session.steps.enumerated() {
      let fields = try #require(try? step.fields.fields)
      let bytes = [UInt8](hex: step.hex)
      #expect(
        try ProtocolVectors.layout(of: step.sends ?? step.receives ?? "").fields(Array(bytes.dropFirst(12)))
          .values.count == fields.values.count)
      if step.sends != nil {
        try stage.send(step)
      } else {
        try #require(try stage.receive(step), "step \(number + 1) of \(session.name): \(step.receives ?? "")")
      }
    }
    let rest = stage.unexpected
    #expect(rest.isEmpty, "\(rest)")
  }

  @Test func sessionsAreRecordedWhenThatIsAsked() throws {
    guard ProcessInfo.processInfo.environment["SLUICE_RECORD_VECTORS"] != nil else { return }
    var vectors = try Self.document.get()
    for index in vectors.sessions.indices { try Stage.record(&vectors.sessions[index]) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try encoder.encode(vectors).write(to: ProtocolVectors.url)
  }

  /// A broker and the clients of one session.
  private final class Stage {
    private let small: SmallWorld
    private var clients: [Int: ScriptedClient] = [:]
    private var taken: [Int: Set<Int>] = [:]
    private var bindings = VectorBindings()

    init(_ session: ProtocolVectors.Session) throws {
      small = try session.identities.isEmpty ? SmallWorld() : SmallWorld(rules: session.identities)
    }

    func client(_ number: Int) -> ScriptedClient {
      if let client = clients[number] { return client }
      let client = small.connect(raw: true)
      clients[number] = client
      return client
    }

    @discardableResult
    func send(_ step: ProtocolVectors.Step) throws -> [UInt8] {
      let fields = try bindings.resolved(step.fields).fields
      let bytes = try ProtocolVectors.bytes(step.sends ?? "", stream: step.stream, fields)
      client(step.client).send(bytes)
      small.settle()
      return bytes
    }

    /// Consumes the next frame on the step's stream. Returns whether it matches.
    func receive(_ step: ProtocolVectors.Step) throws -> Bool {
      let frames = client(step.client).frames
      let next = frames.indices.first {
        !taken[step.client, default: []].contains($0) && frames[$0].header.stream == step.stream
      }
      guard let next, frames[next].header.type.description == step.receives else { return false }
      taken[step.client, default: []].insert(next)
      let fields = try ProtocolVectors.layout(of: step.receives ?? "").fields(frames[next].body)
      return bindings.matches(step.fields, .object(fields.values))
    }

    /// Received frames that the session doesn't contain.
    var unexpected: [String] {
      clients.flatMap { number, client in
        client.frames.indices.filter { !taken[number, default: []].contains($0) }.map {
          "\(client.frames[$0])"
        }
      }
    }

    // MARK: Recording

    static func record(_ session: inout ProtocolVectors.Session) throws {
      let stage = try Stage(session)
      var steps: [ProtocolVectors.Step] = []
      for var step in session.steps where step.sends != nil {
        step.hex = try stage.send(step).hex.filter { $0 != " " }
        steps.append(step)
        steps += try stage.recorded()
      }
      session.steps = steps
    }

    private func recorded() throws -> [ProtocolVectors.Step] {
      var steps: [ProtocolVectors.Step] = []
      for (number, client) in clients.sorted(by: { $0.key < $1.key }) {
        for (index, frame) in client.frames.enumerated()
        where taken[number, default: []].insert(index).inserted {
          let name = frame.header.type.description
          let fields = try ProtocolVectors.layout(of: name).fields(frame.body)
          var header = [UInt8](repeating: 0, count: FrameHeader.size)
          header.withUnsafeMutableBytes { frame.header.write(at: $0.baseAddress!) }
          steps.append(
            ProtocolVectors.Step(
              client: number, receives: name, stream: frame.header.stream,
              fields: veiled(.object(fields.values), in: name),
              hex: (header + frame.body).hex.filter { $0 != " " }))
        }
      }
      return steps
    }

    /// Fields whose values the broker chooses.
    private static let chosen: [String: Set<String>] = [
      "WELCOME": [
        "longest frame", "longest record", "streams", "keepalive", "broker", "software", "expires",
      ],
      "AUTHENTICATED": ["expires"], "ERROR": ["message"], "GOAWAY": ["message"],
      "PUBLISH_OPENED": ["granted through", "bytes through"], "DEMAND": ["granted through", "bytes through"],
      "DELIVER": ["time"],
      "TOPIC_INFO": [
        "settings", "connection", "holding", "last minute", "last five minutes", "holds", "waiting", "bytes",
        "granted", "slow", "age",
      ],
      "TOPICS": ["bytes"], "CURSORS": ["idle", "bytes", "age"], "PING": ["token"],
    ]

    private func veiled(_ value: VectorValue, in frame: String) -> VectorValue {
      switch value {
      case .list(let list): return .list(list.map { veiled($0, in: frame) })
      case .object(var object):
        for (name, value) in object.sorted(by: { $0.key < $1.key }) {
          if Self.chosen[frame]?.contains(name) == true {
            object[name] = .text("*")
          } else if name == "epoch", value != .text("0") {
            let known = bindings.values.first { $0.value == value }?.key
            let variable =
              known ?? (bindings.values.isEmpty ? "$epoch" : "$epoch\(bindings.values.count + 1)")
            _ = bindings.matches(.text(variable), value)
            object[name] = .text(variable)
          } else {
            object[name] = veiled(value, in: frame)
          }
        }
        return .object(object)
      default: return value
      }
    }
  }
}
