import SluiceIO

/// The loop and the network of clients that were given none: one thread for all of them, started with the first and kept
/// for the rest of the program's life.
enum SharedLoop {
  static let network = SocketNetwork()

  /// The loop, or why the system gave none.
  static let loop: Result<EpollLoop, IOError> = {
    do throws(IOError) {
      return .success(try EpollLoop.start(name: "sluice-client"))
    } catch {
      return .failure(error)
    }
  }()
}
