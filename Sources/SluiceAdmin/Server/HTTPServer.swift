import CMicroHTTPD
import Glibc
import SluiceIO

/// Speaks HTTP on one listening socket. The library works on the loop only, and has no thread of its own.
///
/// Unchecked: belongs to its loop, after it was made.
@safe
final class HTTPServer: @unchecked Sendable {
  private let loop: EpollLoop
  private let service: AdminService
  private let limits: AdminLimits
  /// Where the library finds this object.
  private let owner: UnsafeMutablePointer<sluice_http_owner>
  /// Nil once stopped.
  private var daemon: OpaquePointer?
  private var watch: DescriptorWatch?
  private var exchanges: [OpaquePointer: HTTPExchange] = unsafe [:]
  private var sweeper: TimerToken?
  private var isAboutToWork = false
  /// The certificates and the key as the library has them; nil without TLS.
  private let certificate: UnsafeMutablePointer<CChar>?
  private let key: UnsafeMutablePointer<CChar>?

  /// - Parameters:
  ///   - descriptor: a listening socket, which this closes.
  ///   - tls: nil for plain HTTP.
  init(
    _ descriptor: Int32, _ service: AdminService, on loop: EpollLoop, _ limits: AdminLimits, _ tls: AdminTLS?
  ) throws(IOError) {
    unsafe certificate = tls.map { unsafe strdup($0.certificate) }
    unsafe key = tls.map { unsafe strdup($0.key) }
    self.loop = loop
    self.service = service
    self.limits = limits
    unsafe owner = .allocate(capacity: 1)
    unsafe owner.initialize(to: sluice_http_owner())
    unsafe owner.pointee.object = Unmanaged.passUnretained(self).toOpaque()
    unsafe owner.pointee.opened = { unsafe HTTPServer.at($0).opened($1!) }
    unsafe owner.pointee.closed = { unsafe HTTPServer.at($0).closed($1!) }
    unsafe owner.pointee.began = { unsafe HTTPServer.at($0).began($1!, String(cString: $2!)) }
    unsafe owner.pointee.body = { object, connection, bytes, count in
      unsafe HTTPServer.at(object).body(connection!, UnsafeRawBufferPointer(start: bytes, count: count))
    }
    unsafe owner.pointee.handle = { object, connection, method, isFirst in
      unsafe HTTPServer.at(object).handle(connection!, String(cString: method!), isFirst: isFirst != 0)
        ? 1 : 0
    }
    unsafe owner.pointee.completed = { unsafe HTTPServer.at($0).completed($1!) }
    unsafe daemon = sluice_http_start(
      descriptor,
      sluice_http_limits(
        connections: UInt32(clamping: limits.connections), idle_seconds: UInt32(clamping: limits.idle),
        connection_bytes: max(0, limits.connectionBytes)),
      sluice_http_tls(certificate: certificate, key: key), owner)
    guard unsafe daemon == nil else { return }
    let code = errno
    close(descriptor)
    throw IOError(action: "start the admin listener", code: code)
  }

  deinit {
    unsafe free(certificate)
    unsafe free(key)
    unsafe owner.deallocate()
  }

  private static func at(_ object: UnsafeMutableRawPointer?) -> HTTPServer {
    unsafe Unmanaged<HTTPServer>.fromOpaque(object!).takeUnretainedValue()
  }

  /// Begins to accept connections. On the loop.
  func start() {
    guard let daemon = unsafe daemon else { return }
    watch = try? DescriptorWatch(unsafe sluice_http_descriptor(daemon), on: loop) { [unowned self] in work() }
  }

  /// Closes every connection. On the loop.
  func stop() {
    guard let daemon = unsafe daemon else { return }
    unsafe self.daemon = nil
    watch?.end()
    watch = nil
    if let sweeper { loop.cancel(sweeper) }
    // The library ends the process when it is stopped with suspended connections.
    for exchange in open where exchange.isSuspended { resume(exchange) }
    unsafe MHD_stop_daemon(daemon)
  }

  /// Lets the library work, in several turns of the loop if there is much to do.
  private func work() {
    isAboutToWork = false
    for _ in 0..<16 {
      guard let daemon = unsafe daemon else { return }
      if unsafe sluice_http_work(daemon) == 0 { return }
    }
    workSoon()
  }

  /// Schedules `work()`: the library's descriptor doesn't signal connections that were resumed.
  private func workSoon() {
    guard !isAboutToWork else { return }
    isAboutToWork = true
    loop.execute { [weak self] in self?.work() }
  }

  private var isRunning: Bool { unsafe daemon != nil }

  private var open: [HTTPExchange] { unsafe Array(exchanges.values) }

  // MARK: Connections

  private func opened(_ connection: OpaquePointer) {
    unsafe exchanges[connection] = HTTPExchange(connection, at: loop.now)
    if sweeper == nil { sweepLater() }
  }

  private func closed(_ connection: OpaquePointer) {
    unsafe exchanges[connection] = nil
    // At the limit of connections, the library accepts the next one only now.
    workSoon()
  }

  /// Checks deadlines once a second.
  private func sweepLater() {
    sweeper = loop.schedule(after: .seconds(1)) { [weak self] in self?.sweep() }
  }

  private func sweep() {
    sweeper = nil
    // With few connections left, idle ones get less time.
    let head = open.count >= limits.connections - limits.connections / 4 ? min(1, limits.head) : limits.head
    for exchange in open {
      let age = Int((loop.now - exchange.since).components.seconds)
      switch exchange.phase {
      case .head where age >= head: cut(exchange)
      case .asking where age >= limits.source:
        deliver(.problem(.unavailable("the broker doesn't answer")), to: exchange, exchange.number)
      case .sending where age >= limits.answer: cut(exchange)
      default: break
      }
    }
    // The library has deadlines of its own.
    work()
    if !open.isEmpty { sweepLater() }
  }

  /// Shuts the socket down; the library then finds it closed by the peer.
  private func cut(_ exchange: HTTPExchange) {
    let descriptor = unsafe sluice_http_socket(exchange.connection)
    if descriptor >= 0 { shutdown(descriptor, Int32(SHUT_RDWR)) }
  }

  private func suspend(_ exchange: HTTPExchange) {
    exchange.isSuspended = true
    unsafe MHD_suspend_connection(exchange.connection)
  }

  private func resume(_ exchange: HTTPExchange) {
    exchange.isSuspended = false
    unsafe MHD_resume_connection(exchange.connection)
    workSoon()
  }

  // MARK: Requests

  private func began(_ connection: OpaquePointer, _ target: String) {
    unsafe exchanges[connection]?.target = target
  }

  /// A part of a request's body has come.
  private func body(_ connection: OpaquePointer, _ bytes: UnsafeRawBufferPointer) {
    guard let exchange = unsafe exchanges[connection], exchange.takesBody else { return }
    // The library takes no more than the request's head states, which was checked.
    guard exchange.body.count + bytes.count <= limits.bodyBytes else { return cut(exchange) }
    unsafe exchange.body += bytes
  }

  private func completed(_ connection: OpaquePointer) {
    guard let exchange = unsafe exchanges[connection] else { return }
    if case .events(let watcher) = exchange.reply {
      watcher.wake = nil
      service.feed.remove(watcher)
    }
    exchange.next(at: loop.now)
  }

  /// - Returns: false to close the connection.
  private func handle(_ connection: OpaquePointer, _ method: String, isFirst: Bool) -> Bool {
    guard let exchange = unsafe exchanges[connection] else { return false }
    if exchange.reply != nil { return send(exchange, closes: false) }
    guard exchange.phase == .head else { return true }
    var request = request(exchange, method)
    // The library calls again when the request is complete. One that is refused, and may have a body, needn't be.
    let mayHaveBody = request.hasBody || (method != "GET" && method != "HEAD")
    let isRefused = request.fault != nil || mayHaveBody && service.refusesHead(of: request)
    exchange.takesBody = isFirst && request.hasBody && !isRefused
    if isFirst && !isRefused { return true }
    request.body = exchange.body
    exchange.enter(.asking, at: loop.now)
    // It belongs to the loop, which it leaves and comes back to.
    nonisolated(unsafe) let asking = exchange
    service.answer(request) { [weak self, number = exchange.number] reply in
      self?.deliver(reply, to: unsafe asking, number)
    }
    if exchange.reply != nil { return send(exchange, closes: isRefused) }
    guard !isRefused else { return false }
    suspend(exchange)
    return true
  }

  private func request(_ exchange: HTTPExchange, _ method: String) -> AdminRequest {
    let fields = unsafe HTTPInput.fields(of: exchange.connection)
    func header(_ name: String) -> String? {
      let name = name.lowercased()
      return fields.first { $0.name.lowercased() == name }?.value
    }
    var request = AdminRequest()
    request.fault = RequestHead.fault(in: fields)
    request.method = method
    request.target = exchange.target
    request.host = header("Host")
    request.origin = header("Origin")
    request.fetchSite = header("Sec-Fetch-Site")
    request.authorization = header("Authorization")
    request.accept = header("Accept")
    request.contentType = header("Content-Type")
    request.token = header(ActionCheck.header)
    let length = header("Content-Length")
    request.hasBody = (length != nil && length != "0") || header("Transfer-Encoding") != nil
    if header("Transfer-Encoding") == nil { request.bodyLength = length.flatMap { Int($0) } }
    let descriptor = unsafe sluice_http_socket(exchange.connection)
    if let peer = SocketAddress(peerOf: descriptor) { request.peer = peer }
    return request
  }

  private func deliver(_ reply: Reply, to exchange: HTTPExchange, _ number: Int) {
    guard isRunning, exchange.number == number, exchange.reply == nil, exchange.phase == .asking else {
      // The connection that the events were for is gone.
      if case .events(let watcher) = reply { service.feed.remove(watcher) }
      return
    }
    exchange.reply = reply
    if exchange.isSuspended { resume(exchange) }
  }

  // MARK: Responses

  private func send(_ exchange: HTTPExchange, closes: Bool) -> Bool {
    switch exchange.reply {
    case nil: return false
    case .response(let response):
      exchange.enter(.sending, at: loop.now)
      return unsafe HTTPOutput.send(response, on: exchange.connection, closes: closes)
    case .events(let watcher):
      exchange.enter(.streaming, at: loop.now)
      watcher.wake = { [unowned self, unowned exchange] in
        if exchange.isSuspended { resume(exchange) }
      }
      return unsafe HTTPOutput.stream(on: exchange.connection) { [unowned self, unowned exchange] buffer in
        let count = unsafe watcher.take(into: buffer)
        if count > 0 { return count }
        if watcher.hasEnded || !isRunning { return nil }
        suspend(exchange)
        return 0
      }
    }
  }
}

/// A connection of the admin listener, and its present request. Belongs to the loop.
@safe
final class HTTPExchange {
  enum Phase {
    /// The head of a request is awaited.
    case head
    /// The broker's answer is awaited.
    case asking
    /// A response is under way.
    case sending
    /// Events are under way, without an end.
    case streaming
  }

  let connection: OpaquePointer
  private(set) var phase = Phase.head
  private(set) var since: MonotonicTime
  /// Counts the connection's requests, so that a late answer isn't taken for that to the next request.
  private(set) var number = 0
  var target = ""
  /// Whether the present request's body is kept.
  var takesBody = false
  var body: [UInt8] = []
  /// The answer to the present request.
  var reply: Reply?
  /// Whether the library's connection is suspended.
  var isSuspended = false

  init(_ connection: OpaquePointer, at now: MonotonicTime) {
    unsafe self.connection = connection
    since = now
  }

  func enter(_ phase: Phase, at now: MonotonicTime) {
    self.phase = phase
    since = now
  }

  /// Ends the present request, and awaits the next one.
  func next(at now: MonotonicTime) {
    number += 1
    reply = nil
    target = ""
    takesBody = false
    body = []
    enter(.head, at: now)
  }
}
