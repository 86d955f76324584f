import SluiceIO

/// The admin listener: health, metrics, an API and a page for people, over HTTP, on a thread of its own.
///
/// From any thread.
public final class AdminServer: Sendable {
  /// Where it listens, with the real port.
  public let address: SocketAddress
  /// Keeps the file of a Unix socket until the end.
  private let sockets: ListeningSockets
  private let loop: EpollLoop
  private let service: AdminService
  private let servers: [HTTPServer]

  /// Listens, and answers from now on.
  ///
  /// - Throws: when the address can't be bound, or the system has no more threads or descriptors.
  public init(at address: SocketAddress, _ source: any AdminSource, _ options: AdminOptions) throws(IOError) {
    sockets = try ListeningSockets(at: address)
    self.address = sockets.address
    loop = try EpollLoop.start(name: "admin")
    service = AdminService(source, on: loop, options)
    var servers: [HTTPServer] = []
    do throws(IOError) {
      while let descriptor = sockets.take() {
        servers.append(try HTTPServer(descriptor, service, on: loop, options.limits))
      }
    } catch {
      for server in servers { server.stop() }
      loop.stop()
      throw error
    }
    self.servers = servers
    loop.execute { [servers] in
      for server in servers { server.start() }
    }
  }

  /// Closes every connection, and waits for that. Not on its own thread.
  public func stop() {
    loop.execute { [loop, service, servers] in
      service.feed.end()
      for server in servers { server.stop() }
      loop.stop()
    }
    loop.join()
  }
}
