import COpenSSL
import SluiceIO
@testable import SluiceTLS
import SluiceSimulation
import TestSupport
import Testing

/// Peers that cause work in TLS without any content.
@Suite struct EmptyTalkTests {
  @Test func whoSaysNothingButNewKeysIsPutOut() throws {
    let scene = try Scene()
    let talker = try EngineTalker(scene)
    // OpenSSL itself would continue to read while bytes arrive.
    talker.updateKeys(10_000)
    #expect(scene.world.run { scene.accepted[0].failure != nil })
    #expect(scene.accepted[0].failure?.description.contains("without content") == true)
    #expect(scene.accepted[0].failures == 1)
    #expect(scene.accepted[0].received == [])
    #expect(scene.world.run { talker.hasEnded })
  }

  @Test func newKeysNowAndThenAreWelcome() throws {
    let scene = try Scene()
    let talker = try EngineTalker(scene)
    for place in 0..<50 {
      talker.updateKeys(20)
      talker.send(pattern(1_000, from: place * 1_000))
    }
    #expect(scene.world.run { scene.accepted[0].received.count == 50_000 })
    #expect(scene.accepted[0].received == pattern(50_000))
    #expect(scene.accepted[0].failure == nil)
  }

  @Test func oneReadTakesNoMoreThanItsShareOfTheTransport() throws {
    var conditions = SimulatedConditions.calm
    conditions.bufferSize = 4 << 20
    let scene = try Scene(conditions: conditions)
    let talker = try EngineTalker(scene)
    // Each byte follows 500 key updates. One read of the transport could return all of them, but processing them exceeds its share.
    let quiet = scene.accepted[0].readableCalls
    for place in 0..<40 {
      talker.updateKeys(500)
      talker.send(pattern(1, from: place))
    }
    #expect(scene.world.run { scene.accepted[0].received.count == 40 })
    #expect(scene.accepted[0].received == pattern(40))
    #expect(scene.accepted[0].readableCalls - quiet > 3)
  }
}

/// A client that makes OpenSSL do things that a well-behaved client wouldn't.
private final class EngineTalker: ByteStreamHandler {
  private let scene: Scene
  private var stream: (any ByteStream)?
  private var engine: TLSEngine?
  private var isEstablished = false
  private(set) var hasEnded = false

  init(_ scene: Scene) throws {
    self.scene = scene
    guard case .tls(let host, let port) = scene.listener.address else { throw TestFailure("no TLS") }
    let loop = scene.world.loops[1]
    let context = try scene.client().context
    loop.perform {
      _ = scene.world.network.connect(to: .host(host, port: port), on: loop) { [self] result in
        guard case .success(let stream) = result else { return }
        self.stream = stream
        engine = TLSEngine(
          context, isServer: false, transport: stream, shared: TLSLoop(loop, patience: .seconds(1)))
        stream.start(self)
        streamReadable()
      }
    }
    #expect(scene.world.run { self.isEstablished && scene.accepted.first?.stream.security != nil })
  }

  func updateKeys(_ count: Int) {
    scene.world.loops[1].perform {
      guard let engine else { return }
      for _ in 0..<count {
        SSL_key_update(engine.ssl, SSL_KEY_UPDATE_NOT_REQUESTED)
        SSL_do_handshake(engine.ssl)
      }
      engine.flush()
    }
  }

  func send(_ bytes: [UInt8]) {
    scene.world.loops[1].perform {
      guard let engine else { return }
      #expect(bytes.withUnsafeBytes { engine.write($0) } == nil)
      engine.flush()
    }
  }

  func streamReadable() {
    guard let engine, let stream, !hasEnded else { return }
    var bytes = [UInt8](repeating: 0, count: 4_096)
    engine.begin(expecting: nil)
    let outcome = isEstablished ? bytes.withUnsafeMutableBytes { engine.read(into: $0) } : engine.handshake()
    engine.flush()
    switch outcome {
    case .done: isEstablished = true
    case .needsInput: break
    case .ended, .failed:
      hasEnded = true
      stream.close()
    }
  }

  func streamWritable() { engine?.sendUnsent() }

  func streamFailed(_ error: IOError) { hasEnded = true }
}
