"""A coach that asks instead of telling: one write a reply, held to its level by hooks before and after it."""
