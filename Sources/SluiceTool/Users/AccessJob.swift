import Glibc
import SluiceAccess
import SluiceCommand
import SluiceIO

/// Something that is done to users, keys or tokens, without a broker: on a thread of its own, since it takes time, or waits for somebody to type.
enum AccessJob {
  /// Why it came to nothing.
  struct Failure: Error {
    var code = ExitCode.failure
    var message: String

    init(_ message: String, _ code: ExitCode = .failure) {
      self.code = code
      self.message = message
    }

    init(_ error: AccessFileError) {
      self.init(error.description)
    }
  }

  /// Ends the run with what `body` returns, on standard output, or throws. Ctrl-C doesn't wait for it.
  static func start(_ run: Run, _ body: @escaping @Sendable () throws(Failure) -> String) {
    run.interrupted = {
      Terminal.restore()
      run.finish(.interrupted)
    }
    Threads.start {
      let result = Result { () throws(Failure) in try body() }
      run.loop.execute {
        switch result {
        case .success(let text): run.print(text)
        case .failure(let failure): run.finish(failure.code, failure.message)
        }
      }
    }
  }
}
