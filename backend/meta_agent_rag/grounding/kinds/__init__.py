"""What a question asks for, and whether a checked answer gives it; stricter than `answer_kind`, which the loop uses."""
