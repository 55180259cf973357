"""A coach that asks instead of telling: one write per reply, held to its level by hooks before and after it."""
