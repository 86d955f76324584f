import EngineTestSupport
import Glibc
import SluiceIO
import SluiceNATS
import Synchronization
import TestSupport
import Testing

/// The engine's throughput through this client alone, with commits of the shapes that a broker makes.
///
/// Built for release: `SLUICE_TESTS=SluiceNATSTests swift build -c release --build-tests -Xswiftc -enable-testing --scratch-path
/// .build/release-nats`; then `SLUICE_NATS_MEASURE=5 swift test … --filter MeasureTests`, with the seconds for each row.
@Suite(
  "Figures of the engine",
  .enabled(
    if: EngineProcess.program != nil && getenv("SLUICE_NATS_MEASURE") != nil,
    "these take minutes: SLUICE_NATS_MEASURE=SECONDS has them taken"), .serialized)
struct MeasureTests {
  static let seconds = getenv("SLUICE_NATS_MEASURE").flatMap { Double(String(cString: $0)) }

  /// The contents of a commit.
  struct Shape: Sendable {
    var name: String
    /// Batches of records.
    var batches: Int
    var batchSize: Int
    /// Small states, such as cursors.
    var states: Int
    var stateSize = 60
  }

  static let shapes = [
    Shape(name: "400 B + 1 state", batches: 1, batchSize: 400, states: 1),
    Shape(name: "400 B + 5 states", batches: 1, batchSize: 400, states: 5),
    Shape(name: "8 x 64 KiB + 5 states", batches: 8, batchSize: 64 << 10, states: 5),
  ]

  enum Layout: String, CaseIterable, Sendable {
    /// States on separate subjects, each of which keeps its newest message.
    case rollUp = "fixed subjects, rolled up"
    /// Batches as separate messages, all states of a commit in one message.
    case together = "states in one message"
    /// One message for the whole commit.
    case single = "one message"
  }

  @Test func one() throws {
    let engine = try EngineProcess()
    try engine.start()
    try measure("1 server", replicas: 1) { try RealClient([engine]).open() }
  }

  @Test func three() throws {
    let cluster = try EngineCluster()
    try measure("3 servers, R3", replicas: 3) {
      try RealClient(cluster.servers) { $0.credentials = .fixed(.password(user: "app", password: "secret")) }
        .open()
    }
  }

  private func measure(_ engine: String, replicas: Int, _ connect: () throws -> RealClient) throws {
    var count = 0
    for shape in Self.shapes {
      for layout in Layout.allCases {
        for window in shape.batchSize > 1_000 ? [1, 8] : [1, 8, 32] {
          let client = try connect()
          count += 1
          let number = count
          var stream = StreamConfiguration("M\(number)", subjects: ["m\(number).>"])
          stream.replicas = replicas
          stream.allowsAtomicBatches = true
          stream.allowsRollUp = true
          let configuration = stream
          _ = try client.retry { try $0.createStream(configuration, $1) }
          let run = Run(client, shape, layout, window: window, number)
          try run.play(Self.seconds ?? 1)
          print("\(engine)\t\(shape.name)\t\(layout.rawValue)\t\(window) in flight\t\(run.summary)")
          #expect(run.failure == nil)
          let state = try client.retry { try $0.streamInfo("M\(number)", $1) }.state
          #expect(state.lastSequence == run.lastSequence)
          try client.get { try $0.deleteStream("M\(number)", $1) }
        }
      }
    }
  }

  /// Makes commits, several at a time, each expecting the result of those before.
  private final class Run: Sendable {
    private struct State {
      var predicted: UInt64 = 0
      var acknowledged: UInt64 = 0
      var inFlight = 0
      var commits = 0
      var isOver = false
      var failure: NATSError?
      var latencies: [UInt64] = []
      var elapsed: UInt64 = 0
    }

    private let client: RealClient
    private let shape: Shape
    private let layout: Layout
    private let window: Int
    private let prefix: String
    private let stream: String
    private let state = Mutex(State())

    init(_ client: RealClient, _ shape: Shape, _ layout: Layout, window: Int, _ number: Int) {
      self.client = client
      self.shape = shape
      self.layout = layout
      self.window = window
      prefix = "m\(number).t."
      stream = "M\(number)"
    }

    var failure: NATSError? { state.withLock { $0.failure } }
    var lastSequence: UInt64 { state.withLock { $0.acknowledged } }

    func play(_ seconds: Double) throws {
      let begin = Deadline.now
      client.perform { [self] client in
        for _ in 0..<window { commit(client) }
      }
      pause(seconds)
      state.withLock {
        $0.elapsed = Deadline.now - begin
        $0.isOver = true
      }
      try eventually("the last commits", every: 0.001) { state.withLock { $0.inFlight == 0 } }
    }

    var summary: String {
      state.withLock { state in
        let seconds = Double(state.elapsed) / 1e9
        let latencies = state.latencies.sorted()
        func latency(_ part: Double) -> Double {
          latencies.isEmpty ? 0 : Double(latencies[Int(Double(latencies.count - 1) * part)]) / 1e6
        }
        let rate = Double(state.commits) / seconds
        let bytes = rate * Double(shape.batches * shape.batchSize) / 1e6
        return
          "\(Int(rate)) commits/s\t\(round(bytes * 10) / 10) MB/s\tp50 \(round(latency(0.5) * 100) / 100) ms\tp99 \(round(latency(0.99) * 100) / 100) ms"
      }
    }

    private func messages(after sequence: UInt64) -> [NATSMessage] {
      let batch = [UInt8](repeating: 0x61, count: shape.batchSize)
      let states = [UInt8](repeating: 0x62, count: shape.stateSize)
      var messages: [NATSMessage] = []
      switch layout {
      case .rollUp, .together:
        for _ in 0..<shape.batches { messages.append(NATSMessage(subject: prefix + "b", payload: batch)) }
        if layout == .rollUp {
          for number in 0..<shape.states {
            var headers = NATSHeaders()
            headers.rollUp(.subject)
            messages.append(NATSMessage(subject: prefix + "s.\(number)", headers: headers, payload: states))
          }
        } else {
          var headers = NATSHeaders()
          headers.rollUp(.subject)
          let all = [UInt8](repeating: 0x62, count: shape.states * shape.stateSize)
          messages.append(NATSMessage(subject: prefix + "s", headers: headers, payload: all))
        }
      case .single:
        let all = [UInt8](
          repeating: 0x61, count: shape.batches * shape.batchSize + shape.states * shape.stateSize)
        messages.append(NATSMessage(subject: prefix + "c", payload: all))
      }
      messages[0].headers.expectLastSequence(sequence)
      return messages
    }

    /// Called on the loop.
    private func commit(_ client: NATSClient) {
      let expected = state.withLock { state -> UInt64? in
        if state.isOver || state.failure != nil { return nil }
        state.inFlight += 1
        return state.predicted
      }
      guard let expected else { return }
      let messages = messages(after: expected)
      state.withLock { $0.predicted += UInt64(messages.count) }
      let begin = Deadline.now
      do {
        try JetStream(client).commit(messages, to: stream) { [self] result in
          state.withLock { state in
            state.inFlight -= 1
            switch result {
            case .failure(let error): state.failure = error
            case .success(let acknowledgement):
              state.acknowledged = acknowledgement.sequence
              if !state.isOver {
                state.commits += 1
                state.latencies.append(Deadline.now - begin)
              }
            }
          }
          commit(client)
        }
      } catch {
        state.withLock {
          $0.inFlight -= 1
          $0.failure = error
        }
      }
    }
  }
}
