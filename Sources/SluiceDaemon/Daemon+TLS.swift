import SluiceCommand
import SluiceIO
import SluiceTLS
import Synchronization

// The broker's certificate, and failed handshakes.
extension Daemon {
  /// Reads the files; nil where no address has TLS.
  ///
  /// - Throws: `UsageError` that names the file.
  static func tlsServer(_ settings: DaemonSettings, _ logger: Logger) throws(UsageError) -> TLSServer? {
    guard let options = try settings.tlsOptions() else { return nil }
    do throws(TLSSetupError) {
      let server = try TLSServer(options)
      warn(about: server, logger)
      return server
    } catch {
      throw UsageError("TLS can't be set up: \(error)")
    }
  }

  /// Reads certificates again. What can't be read changes nothing.
  ///
  /// - Parameter options: where they are now; nil for where they were.
  /// - Returns: whether they could be read.
  @discardableResult
  func rereadCertificates(_ options: TLSServerOptions? = nil) -> Bool {
    guard let tls else { return false }
    do throws(TLSSetupError) {
      try tls.reload(options)
      logger.log(
        .info, "reread certificates; connections stay",
        [
          "certificate": .text(tls.options.certificate),
          "expires": .text(tls.expires.map { WallTime.format($0) } ?? "unknown"),
        ])
      Self.warn(about: tls, logger)
      return true
    } catch {
      logger.log(
        .error, "certificates stay as they were: what was reread is wrong",
        ["cause": .text(error.description)])
      return false
    }
  }

  private static func warn(about server: TLSServer, _ logger: Logger) {
    for warning in server.warnings { logger.log(.warning, warning) }
    if let expires = server.expires, expires <= Logger.now {
      logger.log(
        .warning, "the certificate has expired, and no client that looks at it will connect",
        ["certificate": .text(server.options.certificate), "expired": .text(WallTime.format(expires))])
    }
  }
}

/// Writes failed handshakes to the log, up to a number a minute, since clients can cause any number of them.
final class HandshakeLog: Sendable {
  private static let perMinute = 20

  private let logger: Logger
  private let state = Mutex((minute: Int64(0), count: 0))

  init(_ logger: Logger) {
    self.logger = logger
  }

  /// From any thread.
  func note(_ peer: SocketAddress, _ error: IOError) {
    let minute = Logger.now / 60_000
    let count = state.withLock { state in
      if state.minute != minute { state = (minute, 0) }
      state.count += 1
      return state.count
    }
    guard count <= Self.perMinute else { return }
    logger.log(
      .info, "a client got no further than TLS's handshake",
      ["peer": .text(peer.description), "cause": .text(error.reason ?? error.description)])
    if count == Self.perMinute {
      logger.log(.info, "no more of these are logged in this minute")
    }
  }
}
