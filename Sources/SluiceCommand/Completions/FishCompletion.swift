/// Completion for fish.
enum FishCompletion {
  static func render(_ commands: [CompletionScript.Command], _ topics: CompletionScript.TopicSource?)
    -> String
  {
    let program = String(commands[0].program)
    let function = "__\(CompletionScript.identifier(program))_command"
    let valued = Set(commands.flatMap(\.options).filter(\.takesWord).map(\.name))
    let members = Set(commands.flatMap(\.members).map(\.word))
    let header = """
      # Completion of \(program) for fish.

      # The commands in the line so far: 'topic create'.
      function \(function)
          set -l found
          set -l skips no
          for word in (commandline -opc)[2..-1]
              if test $skips = yes
                  set skips no
                  continue
              end
              switch $word
                  case '--*=*'
                  case \(valued.sorted().map { "--\($0)" }.joined(separator: " "))
                      set skips yes
                  case '-*'
                  case \(members.isEmpty ? "''" : members.sorted().joined(separator: " "))
                      set -a found $word
              end
          end
          string join ' ' -- $found
      end

      """
    return header + (topics.map(offering) ?? "") + "complete -c \(program) -f\n"
      + commands.map { lines($0, program, function) }.joined()
  }

  private static func lines(
    _ command: CompletionScript.Command, _ program: String, _ function: String
  ) -> String {
    let condition = "test \"$(\(function))\" = \"\(command.path)\""
    let start = "complete -c \(program) -n \(quoted(condition))"
    var text = ""
    for member in command.members {
      text += "\(start) -a \(member.word) -d \(quoted(member.summary))\n"
    }
    for option in command.options {
      text += "\(start) -l \(option.name)"
      if option.value != nil {
        // An option with an optional value has it only after =.
        if option.bare == nil { text += " -r" }
        let completion = CompletionScript.Completion(option)
        text += (completion == .files ? "" : " -f") + offer(completion)
      }
      text += " -d \(quoted(option.help))\n"
    }
    for offer in command.operands.map({ offer(.init($0)) }) where !offer.isEmpty {
      text += "\(start)\(offer)\n"
    }
    return text
  }

  /// The options of `complete` that offer a value; none if there is nothing to offer.
  private static func offer(_ completion: CompletionScript.Completion) -> String {
    switch completion {
    case .nothing: ""
    case .files: " -F"
    case .directories: " -a '(__fish_complete_directories)'"
    case .topics: " -a '(\(CompletionScript.topicsFunction))'"
    case .words(let words): " -a \(quoted(words.joined(separator: " ")))"
    }
  }

  private static func offering(_ topics: CompletionScript.TopicSource) -> String {
    """
    # The names of topics that begin with the word that is being written.
    function \(CompletionScript.topicsFunction)
        set -l given
        set -l option
        set -l prefix (commandline -ct)
        for word in (commandline -opc)[2..-1]
            if test -n "$option"
                set -a given $option $word
                set option
                continue
            end
            switch $word
                case \(patterns(topics.valued))
                    set option $word
                case \(patterns(topics.single))
                    set -a given $word
            end
        end
        \(topics.command) "$prefix" $given </dev/null 2>/dev/null
    end


    """
  }

  private static func patterns(_ words: [String]) -> String {
    words.map { "'\($0)'" }.joined(separator: " ")
  }

  private static func quoted(_ text: String) -> String {
    var result = "'"
    for character in text {
      if character == "'" || character == "\\" { result += "\\" }
      result.append(character)
    }
    return result + "'"
  }
}
