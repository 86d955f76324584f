import SluiceIO

/// The visitors' connections. At the limit, an eighth as many further ones wait for another to end, and more are rejected.
///
/// Unchecked: belongs to its loop.
final class AdminConnections: @unchecked Sendable {
  private let service: AdminService
  private let limits: AdminLimits
  private let loop: any EventLoop
  private var open: [ObjectIdentifier: AdminConnection] = [:]
  private var waiting: [any ByteStream] = []
  private var timer: TimerToken?
  private var hasEnded = false

  init(_ service: AdminService, _ limits: AdminLimits, on loop: any EventLoop) {
    self.service = service
    self.limits = limits
    self.loop = loop
  }

  func accept(_ stream: any ByteStream) {
    guard !hasEnded, waiting.count < max(1, limits.connections / 8) else { return stream.abort() }
    waiting.append(stream)
    startNext()
  }

  /// Closes all of them.
  func end() {
    hasEnded = true
    loop.cancel(&timer)
    for stream in waiting { stream.abort() }
    waiting = []
    for connection in open.values { connection.end() }
  }

  private func startNext() {
    while open.count < limits.connections, !waiting.isEmpty {
      let connection = AdminConnection(waiting.removeFirst(), service, limits, on: loop) { [unowned self] in
        open[ObjectIdentifier($0)] = nil
        startNext()
      }
      open[ObjectIdentifier(connection)] = connection
      connection.start()
    }
    if timer == nil, !open.isEmpty, !hasEnded { checkLater() }
  }

  private func checkLater() {
    timer = loop.schedule(after: .seconds(1)) { [weak self] in self?.check() }
  }

  private func check() {
    timer = nil
    let isCrowded = open.count >= limits.connections - limits.connections / 4
    for connection in Array(open.values) { connection.checkDeadlines(isCrowded: isCrowded) }
    if !open.isEmpty { checkLater() }
  }
}
