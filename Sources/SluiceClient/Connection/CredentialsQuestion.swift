import SluiceIO
import SluiceWire

/// Asks for the credentials of a connection, in a limited time. On the loop only.
final class CredentialsQuestion {
  typealias Completion = (Result<Credentials, ClientError>) -> Void

  /// Providers may hand on to others, but not for ever.
  private static let mostProviders = 8

  private let loop: any EventLoop
  private var completion: Completion?
  private var task: Task<Void, Never>?
  private var timer: TimerToken?

  /// - Parameter completion: called once, at once for credentials that are known, unless the question is abandoned.
  init(
    _ credentials: ClientCredentials, within time: Duration, on loop: any EventLoop,
    _ completion: @escaping Completion
  ) {
    self.loop = loop
    let provider: ClientCredentials.Provider<ClientCredentials.Provide>
    switch credentials.kind {
    case .fixed(let fixed):
      completion(.success(fixed))
      return
    case .computed(let computed):
      completion(computed.ask())
      return
    case .provided(let provided): provider = provided
    }
    self.completion = completion
    timer = loop.schedule(after: time) { [weak self] in
      self?.timer = nil
      self?.complete(.failure(Self.unavailable("they weren't provided within \(time)")))
    }
    task = Answer(self).fill(from: provider, on: loop)
  }

  func abandon() {
    completion = nil
    finish()
  }

  fileprivate static func ask(
    _ provider: ClientCredentials.Provider<ClientCredentials.Provide>
  ) async -> Result<Credentials, ClientError> {
    var provider = provider
    for _ in 0..<mostProviders {
      do {
        switch try await provider.ask().kind {
        case .fixed(let fixed): return .success(fixed)
        case .computed(let computed): return computed.ask()
        case .provided(let next): provider = next
        }
      } catch let error as ClientError {
        return .failure(error)
      } catch {
        return .failure(unavailable("\(error)"))
      }
    }
    return .failure(unavailable("their provider hands on to others without end"))
  }

  private static func unavailable(_ why: String) -> ClientError {
    ClientError(.credentialsUnavailable, "the client's credentials can't be had: \(why)")
  }

  private func complete(_ result: Result<Credentials, ClientError>) {
    let completion = exchange(&completion, for: nil)
    finish()
    completion?(result)
  }

  private func finish() {
    task?.cancel()
    task = nil
    if let timer { loop.cancel(timer) }
    timer = nil
  }

  /// What the task keeps of the question.
  // @unchecked: it is looked at on the loop only.
  private final class Answer: @unchecked Sendable {
    private(set) weak var question: CredentialsQuestion?

    init(_ question: CredentialsQuestion) {
      self.question = question
    }

    func fill(
      from provider: ClientCredentials.Provider<ClientCredentials.Provide>, on loop: any EventLoop
    ) -> Task<Void, Never> {
      Task {
        let result = await CredentialsQuestion.ask(provider)
        loop.execute { self.question?.complete(result) }
      }
    }
  }
}
