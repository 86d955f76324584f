import Glibc
import SluiceIO
import SluiceSimulation
import SluiceWire

/// The broker's end of one connection after another: sends WELCOME to each client, and given frames to the last one.
// @unchecked: used only on the world's single thread.
final class HostileBroker: ByteStreamHandler, @unchecked Sendable {
  let address = SocketAddress.host("broker", port: 7420)
  private let loop: SimulatedLoop
  private let welcome: [UInt8]
  private var stream: (any ByteStream)?
  private var outbox: [UInt8] = []

  init(_ world: SimulatedWorld, _ welcome: Welcome) throws {
    loop = world.makeLoop(name: "broker")
    self.welcome = welcome.encoded(stream: 0)
    _ = try world.network.listen(at: address, group: LoopGroup([loop])) { [unowned self] stream, _ in
      self.stream?.close()
      self.stream = stream
      outbox = self.welcome
      stream.start(self)
      streamWritable()
    }
  }

  func send(_ bytes: [UInt8]) {
    outbox += bytes
    loop.perform { streamWritable() }
  }

  func hangUp(abruptly: Bool) {
    loop.perform {
      if abruptly { stream?.abort() } else { stream?.close() }
    }
    stream = nil
    outbox = []
  }

  func streamWritable() {
    guard !outbox.isEmpty, let stream else { return }
    let result = outbox.withUnsafeMutableBytes { bytes in
      var vector = iovec(iov_base: bytes.baseAddress!, iov_len: bytes.count)
      return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
    }
    if case .wrote(let count) = result { outbox.removeFirst(count) }
  }

  func streamReadable() {
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 16) { buffer in
      switch stream?.read(into: buffer) {
      case .end, .failed:
        stream?.close()
        stream = nil
      case .bytes, .wouldBlock, nil: break
      }
    }
  }

  func streamFailed(_ error: IOError) { stream = nil }
}
